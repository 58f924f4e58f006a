# shellcheck shell=bash
# Sessions for scripts: source this file in bash, then call its functions. All of them are fronts for `mas`.
#
#   . lib/session.sh                                     # of an installed mas: . "$(mas env --shell-lib)"
#   create_session_workspace "" team.json >/dev/null     # start a session, be in it
#   echo "$MAS_SESSION_ID works in $MAS_SESSION_DIR"
#   SESSION_ID=$(generate_uuid)                          # or with an id of your own
#   create_session_workspace "$SESSION_ID" >/dev/null
#   load_session "$SESSION_ID"                           # be in it again later, in any shell
#
# Being in a session means: MAS_ROOT MAS_WORKSPACE_ROOT MAS_SESSION_ID MAS_SESSION_DIR MAS_SESSION_NAME UNIT_DIR
# WORKFLOWS_DIR SESSION_NAME are exported, as `mas env` prints them; MAS_DATA_DIR and MAS_SESSION_MODE are unset;
# SESSION_ID TMUX_SESSION STATUS CREATED_AT TMUX_SOCKET are set, as the session's `.session` file says. That file is
# parsed and never sourced: agents could have written to it.
#
# Every function returns the exit code of `mas` (see `mas --help`) and, where it fails, changes nothing.
#
# The workspace is $MAS_WORKSPACE_ROOT, else $MAS_ROOT, else the one this directory is in. `mas` is $MAS if set, else the
# one of the checkout or installation this file lies in, else the one on PATH.

_MAS_SHELL_DIR=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

# Print the `mas` to use.
mas_program() {
    local beside="$_MAS_SHELL_DIR/../.venv/bin/mas"
    case $_MAS_SHELL_DIR in
        */share/mas/lib) beside="$_MAS_SHELL_DIR/../../../bin/mas" ;;
    esac
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

# Run `mas` in the workspace that the variables name.
_mas() (
    mas=$(mas_program) || exit
    root=${MAS_WORKSPACE_ROOT:-${MAS_ROOT:-}}
    exec env ${root:+"MAS_WORKSPACE_ROOT=$root"} "$mas" "$@"
)

# Print a new UUID v4.
generate_uuid() {
    local hex
    hex=$(od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n') || return
    printf '%s-%s-4%s-%x%s-%s\n' "${hex:0:8}" "${hex:8:4}" "${hex:13:3}" "$((0x${hex:16:1} & 3 | 8))" "${hex:17:3}" "${hex:20:12}"
}

# create_session_workspace [SESSION_ID] [CONFIG_FILE]
# Start a session (with the body of a `POST /runs` in CONFIG_FILE), print its id and be in it. It has the id SESSION_ID,
# a UUID v4; the function returns 4 if there is such a session. Without one, MAS draws it.
create_session_workspace() {
    local wanted="${1:-}" config="${2:-}" started
    started=$(_mas start ${wanted:+"--id=$wanted"} ${config:+"--config=$config"}) || return
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
    local variables pairs
    if [ -z "${1:-}" ]; then
        printf 'error: Which session?\nhint:  mas list; load_session SESSION_ID\n' >&2
        return 2
    fi
    variables=$(_mas env -- "$1") || return
    pairs=$(eval "$variables" && _mas_session_pairs "$MAS_SESSION_DIR/.session" "$MAS_SESSION_ID") || return
    eval "$pairs"
    # Last: a workspace that was moved has other paths by now than the file says.
    eval "$variables"
}

# _mas_session_pairs FILE SESSION_ID
# Print what a `.session` file says of that session, as assignments that are safe to evaluate.
_mas_session_pairs() (
    LC_ALL=C
    plain='^[A-Za-z0-9_@%+=:,./-]*$'
    quoted="^'([^']|'\"'\"')*'\$"
    found=''
    while IFS= read -r line || [ -n "$line" ]; do
        key=${line%%=*} value=${line#*=}
        if [ "$key" = "$line" ]; then
            found=damaged && break
        elif [[ $value =~ $quoted ]]; then
            value=${value#\'} value=${value%\'}
            value=${value//"'\"'\"'"/"'"}
        elif ! [[ $value =~ $plain ]]; then
            found=damaged && break
        fi
        case $key in
            SESSION_ID) found=$value ;;
            TMUX_SESSION | STATUS | CREATED_AT | UNIT_DIR | WORKFLOWS_DIR | TMUX_SOCKET) ;;
            *) continue ;;
        esac
        printf '%s=%q\n' "$key" "$value"
    done 2>/dev/null <"$1" || found=''
    if [ "$found" != "$2" ]; then
        printf 'error: %q cannot be read as the file of session %s\nhint:  mas repair\n' "$1" "$2" >&2
        exit 5
    fi
)
