"""mas completion: Print a script that completes commands, options, session ids and agents in your shell."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments
from mas.cli.render import Render

SUMMARY = "print shell completion for bash, zsh or fish"
WHERE = "nowhere"
EXAMPLES = """
eval "$(mas completion bash)"       # in ~/.bashrc
eval "$(mas completion zsh)"        # in ~/.zshrc, after compinit
mas completion fish > ~/.config/fish/completions/mas.fish
"""

_BASH = """\
_mas_complete() {
    local candidate _
    COMPREPLY=()
    while IFS=$'\\t' read -r candidate _; do
        case $candidate in
            :files) compopt -o default 2>/dev/null ;;
            :directories) compopt -o dirnames 2>/dev/null ;;
            *) COMPREPLY+=("$candidate") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _mas_complete mas
"""
_ZSH = """\
_mas_complete() {
    local -a found
    local candidate about
    while IFS=$'\\t' read -r candidate about; do
        case $candidate in
            :files) _files; return ;;
            :directories) _files -/; return ;;
            *) found+=("${candidate//:/\\\\:}:$about") ;;
        esac
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe mas found
}
compdef _mas_complete mas
"""
_FISH = """\
function __mas_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l program $before[1]
    set -e before[1]
    for line in ($program complete -- $before "$current" 2>/dev/null)
        switch $line
            case ':files*'
                __fish_complete_path "$current"
            case ':directories*'
                __fish_complete_directories "$current"
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c mas -f -a '(__mas_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SCRIPTS, help="your shell")


def run(args: Arguments, out: Render) -> int:
    out.result({"shell": args.shell, "script": _SCRIPTS[args.shell]}, lambda: out.raw(_SCRIPTS[args.shell]))
    return 0
