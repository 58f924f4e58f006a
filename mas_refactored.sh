#!/usr/bin/env bash
# The front of old, for scripts and habits: finds `mas` and passes everything on to it.
set -eu

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
lib=$here/lib/session.sh
# In an installation this file is in bin/.
[ -e "$lib" ] || lib=$here/../share/mas/lib/session.sh
# shellcheck source=lib/session.sh
. "$lib"

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

With MAS_SESSION_ID set, start uses that id (a UUID v4 that no session has). The workspace is
MAS_WORKSPACE_ROOT, else MAS_ROOT, else the one this directory is in.

mas is $MAS if set, else the one beside this file, else the one on PATH.
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
if [ "$command" = start ] && [ -n "${MAS_SESSION_ID:-}" ]; then
    inside=${MAS_SESSION_DIR:-}
    if [ "${inside##*/}" = "$MAS_SESSION_ID" ]; then
        # Set by MAS, for its agents and for shells that are in a session: no wish for a new one.
        printf 'This shell is in session %s; the new session gets an id of its own.\n' "$MAS_SESSION_ID" >&2
    else
        _mas start --id "$MAS_SESSION_ID" "$@"
        # shellcheck disable=SC2016 # for the reader to type
        printf 'hint:  eval "$(mas env %s)" sets UNIT_DIR, WORKFLOWS_DIR and SESSION_NAME in your shell\n' "$MAS_SESSION_ID" >&2
        exit
    fi
fi
mas=$(mas_program)
root=${MAS_WORKSPACE_ROOT:-${MAS_ROOT:-}}
exec env ${root:+"MAS_WORKSPACE_ROOT=$root"} "$mas" "$command" "$@"
