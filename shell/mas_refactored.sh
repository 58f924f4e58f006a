#!/usr/bin/env bash
# The front of old, for scripts and habits: finds `mas` and passes everything on to it.
set -eu

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=shell/session.sh
. "$here/session.sh"

usage() {
    cat <<'HELP'
mas_refactored.sh: the old front; it passes everything on to mas

usage: mas_refactored.sh COMMAND …

  start [--config FILE]       start a session and print its id
  stop [ID …]                 end its programs, keep its directory
  list                        list sessions
  status [ID]                 list sessions, or show one
  restore ID …                bring stopped sessions back
  attach [ID] [AGENT]         see a session in tmux
  send TARGET MESSAGE         type a message to agents
  clean --older-than 7d       remove old sessions

Every other command of mas works here too; old spellings:
  create new    → start       ls sessions   → list        kill     → stop
  resume        → restore     info          → show        clean    → prune
  remove rm     → delete      message       → send        setup    → init

mas is $MAS if set, else the one of this checkout, else the one on PATH.
mas --help shows all commands and exit codes; mas COMMAND --help the options of one.
HELP
}

if [ $# -eq 0 ]; then
    usage >&2
    exit 2
fi
command=$1
shift
case $command in
    -h | --help | help)
        if [ $# -eq 0 ]; then
            usage
            exit 0
        fi
        ;;
    status)
        # With a session it means that one, with nothing or only options all of them.
        case ${1:--} in
            -*) command=list ;;
            *) command=show ;;
        esac
        ;;
    create | new) command=start ;;
    ls | sessions) command=list ;;
    kill) command=stop ;;
    resume) command=restore ;;
    info) command=show ;;
    clean | cleanup) command=prune ;;
    remove | rm) command=delete ;;
    message) command=send ;;
    setup) command=init ;;
esac
mas=$(mas_program)
exec "$mas" "$command" "$@"
