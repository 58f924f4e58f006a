# shellcheck shell=bash
# Sessions for scripts: source this file in bash, then call its functions. All of them are fronts for `mas`.
#
#   . shell/session.sh
#   create_session_workspace "" team.json >/dev/null     # start a session, be in it
#   echo "$MAS_SESSION_ID works in $MAS_SESSION_DIR"
#   id=$(create_session_workspace)                       # or only learn its id,
#   load_session "$id"                                   # and be in it later
#
# Variables come from `mas env` and are exported: MAS_WORKSPACE_ROOT MAS_SESSION_ID MAS_SESSION_DIR
# MAS_SESSION_NAME UNIT_DIR WORKFLOWS_DIR SESSION_NAME; MAS_DATA_DIR and MAS_SESSION_MODE are unset. SESSION_ID is
# set too, not exported. A session's own `.session` file is never sourced: its agents could have written to it.
#
# Every function answers with the exit code of `mas` (see `mas --help`) and, where it fails, changes nothing.
#
# `mas` is $MAS if set, else the one of the checkout this file lies in, else the one on PATH.

_MAS_SHELL_DIR=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

# Print the `mas` to use.
mas_program() {
    local beside="$_MAS_SHELL_DIR/../.venv/bin/mas"
    if [ -n "${MAS:-}" ]; then
        if ! type -P -- "$MAS"; then
            printf 'error: MAS=%s is not a program\n' "$MAS" >&2
            return 7
        fi
    elif [ -x "$beside" ]; then
        printf '%s\n' "$beside"
    elif ! type -P mas; then
        printf 'error: mas is not installed\nhint:  make setup in the checkout, or MAS=/path/to/mas\n' >&2
        return 7
    fi
}

# create_session_workspace [SESSION_ID] [CONFIG_FILE]
# Start a session (with the body of a `POST /runs` in CONFIG_FILE), print its id and be in it.
# MAS draws ids itself. A SESSION_ID is still taken, because scripts of old pass one, but only said to be unused;
# SESSION_ID, MAS_SESSION_ID and the output hold the real one. What is no UUID at all is refused.
create_session_workspace() {
    local wanted="${1:-}" config="${2:-}" mas started
    if [ -n "$wanted" ] && { [ "${#wanted}" -ne 36 ] || [ "${wanted//[0-9A-Fa-f-]/}" ]; }; then
        printf 'error: Not a session id: %q\n' "$wanted" >&2
        printf 'hint:  create_session_workspace "" [CONFIG_FILE]; MAS draws the id\n' >&2
        return 2
    fi
    mas=$(mas_program) || return
    started=$("$mas" start ${config:+"--config=$config"}) || return
    if [ -n "$wanted" ]; then
        printf 'MAS draws session ids itself; %s is not used.\nSession ID: %s\n' "$wanted" "$started" >&2
    fi
    load_session "$started" || return
    printf '%s\n' "$started"
}

# initialize_session_units SESSION_DIR
# Give a session of this workspace the units and workflows of the templates that it lacks, and print what was added.
# Nothing that is there is touched, no link is followed.
initialize_session_units() (
    if [ -z "${1:-}" ] || ! directory=$(CDPATH='' cd -P -- "$1" 2>/dev/null && pwd -P); then
        printf 'error: No directory %q\nhint:  mas list\n' "${1:-}" >&2
        exit 3
    fi
    load_session "${directory##*/}" || exit
    if [ "$directory" != "$MAS_SESSION_DIR" ]; then
        printf 'error: %q is not a session of the workspace %q\nhint:  mas list\n' "$directory" "$MAS_WORKSPACE_ROOT" >&2
        exit 2
    fi
    for part in unit workflows; do
        _mas_add_missing "$MAS_WORKSPACE_ROOT/$part" "$directory" "$part" || exit
    done
)

# _mas_add_missing TEMPLATES SESSION_DIR PART
# Copy aside, then move in: an entry is there whole or not at all.
_mas_add_missing() (
    umask 022
    shopt -s nullglob
    shopt -u dotglob failglob
    set +f
    if ! CDPATH='' cd -P -- "$2/$3" 2>/dev/null || [ "$(pwd -P)" != "$2/$3" ]; then
        printf 'error: %q is not a directory of the session\nhint:  mas repair\n' "$2/$3" >&2
        exit 5
    fi
    aside=$(mktemp -d "$2/.mas/units.XXXXXX") || exit 6
    trap 'command rm -rf -- "$aside"' EXIT
    for template in "$1"/*; do
        name=${template##*/}
        if [ -e "$name" ] || [ -L "$name" ]; then
            continue
        fi
        command cp -RP -- "$template" "$aside/" || exit 6
        if [ ! -L "$aside/$name" ]; then
            chmod -R u+rwX -- "$aside/$name" || exit 6
        fi
        # -n: should an agent put something there meanwhile, be it a link to elsewhere, it stays as it is.
        command mv -n -- "$aside/$name" . 2>/dev/null || :
        if [ ! -e "$aside/$name" ] && [ ! -L "$aside/$name" ]; then
            printf '%s/%s\n' "$3" "$name"
        elif [ ! -e "$name" ] && [ ! -L "$name" ]; then
            printf 'error: Could not add %q\nhint:  df -h; mas doctor\n' "$2/$3/$name" >&2
            exit 6
        fi
    done
)

# load_session SESSION_ID
# Be in a session: set its variables in this shell. A unique prefix of 4 or more, or mas-xxxxxxxx, will do.
load_session() {
    local mas variables
    if [ -z "${1:-}" ]; then
        printf 'error: Which session?\nhint:  mas list; load_session SESSION_ID\n' >&2
        return 2
    fi
    mas=$(mas_program) || return
    variables=$("$mas" env -- "$1") || return
    eval "$variables"
    # shellcheck disable=SC2034 # for the caller
    SESSION_ID=$MAS_SESSION_ID
}
