"""mas completion: Print a script that completes commands, options, session ids and agents in your shell."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments
from mas.cli.render import Render

EXAMPLES = """
eval "$(mas completion bash)"       # in ~/.bashrc
eval "$(mas completion zsh)"        # in ~/.zshrc, after compinit
mas completion fish > ~/.config/fish/completions/mas.fish
"""

_BASH = """\
_mas_complete() {
    local IFS=$'\\n' line
    COMPREPLY=()
    while read -r line; do COMPREPLY+=("${line%%$'\\t'*}"); done \\
        < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [ "${#COMPREPLY[@]}" -gt 0 ] || compopt -o default
}
complete -F _mas_complete mas
"""
_ZSH = """\
_mas_complete() {
    local -a found
    local line
    while IFS= read -r line; do
        found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#found} )); then _describe mas found; else _files; fi
}
compdef _mas_complete mas
"""
_FISH = """\
function __mas_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c mas -f -a '(__mas_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SCRIPTS, help="your shell")


def run(args: Arguments, out: Render) -> int:
    out.result({"shell": args.shell, "script": _SCRIPTS[args.shell]}, lambda: out.raw(_SCRIPTS[args.shell]))
    return 0
