"""lib/session.sh: sessions for scripts, on top of `mas`."""

from __future__ import annotations

import os
import shutil
from shlex import quote

import pytest

from mas.model.ids import is_session_id
from tests.shell.front import FRONT, SESSION_SH, bash
from tests.site import REPOSITORY, Site

HOSTILE = [
    "",
    "../../etc",
    "/",
    "-h",
    "--help",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "x\ntouch pwned",
    "*",
    "' ; touch pwned; '",
    "00000000-0000-4000-8000-00000000000$(touch pwned)",
    "00000000-0000-4000-8000-000000000000",
    "é" * 36,
]


def nothing_was_run(site: Site) -> bool:
    return not any("pwned" in names for _, _, names in os.walk(site.directory))


@pytest.mark.parametrize("file", [SESSION_SH, FRONT])
def test_the_scripts_are_clean(bare: Site, file: str) -> None:
    assert bare.run(["bash", "-n", file]).returncode == 0
    assert bare.run(["sh", "-n", file]).returncode == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    checked = bare.run(["shellcheck", "-x", file], cwd=REPOSITORY)
    assert checked.stdout == ""


def test_sourcing_says_nothing_and_changes_no_option(site: Site) -> None:
    script = 'before=$(set +o; shopt); . "$1"; test "$before" = "$(set +o; shopt)"'
    done = site.run(["bash", "-c", script, "script", SESSION_SH])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_session_is_created_and_the_shell_is_in_it(site: Site) -> None:
    with open(site.path("run file.json"), "w", encoding="utf-8") as file:
        file.write('{"team": "solo", "name": "scripted"}')
    script = """
        export MAS_DATA_DIR=/old MAS_SESSION_MODE=isolated
        create_session_workspace "" "run file.json" >printed
        test "$(cat printed)" = "$MAS_SESSION_ID" && test "$SESSION_ID" = "$MAS_SESSION_ID"
        test -z "${MAS_DATA_DIR+set}${MAS_SESSION_MODE+set}"
        unset MAS_SERVER MAS_ISOLATION
        env | grep -E '^(MAS_[A-Z_]+|UNIT_DIR|WORKFLOWS_DIR|SESSION_NAME)=' | grep -vE '^MAS_(TEST_RUN|DIR)=' | sort
    """
    done = bash(site, script)
    assert done.returncode == 0, done.stderr
    (session,) = site.statuses()
    assert done.stdout.splitlines() == [
        f"MAS_ROOT={site.root}",
        f"MAS_SESSION_DIR={site.session(session)}",
        f"MAS_SESSION_ID={session}",
        f"MAS_SESSION_NAME=mas-{session[:8]}",
        f"MAS_WORKSPACE_ROOT={site.root}",
        f"SESSION_NAME=mas-{session[:8]}",
        f"UNIT_DIR={site.session(session, 'unit')}",
        f"WORKFLOWS_DIR={site.session(session, 'workflows')}",
    ]
    assert site.json("show", session)["name"] == "scripted"


def test_the_id_alone_can_be_taken_and_loaded_later(site: Site) -> None:
    with open(site.path("-run.json"), "w", encoding="utf-8") as file:
        file.write('{"team": "solo"}')
    script = """
        id=$(create_session_workspace "" -run.json)
        test -z "${MAS_SESSION_ID+set}"
        load_session "mas-${id:0:8}"
        test "$MAS_SESSION_ID" = "$id"
        load_session "${id:0:4}"
        echo "$id"
    """
    done = bash(site, script)
    assert (done.returncode, done.stdout.split()) == (0, list(site.statuses())), done.stderr


def test_an_id_of_the_callers_own_is_used_or_refused(site: Site) -> None:
    with open(site.path("run.json"), "w", encoding="utf-8") as file:
        file.write('{"team": "solo"}')
    script = """
        SESSION_ID=$(generate_uuid)
        create_session_workspace "$SESSION_ID" run.json
        echo "$SESSION_ID $MAS_SESSION_ID"
        create_session_workspace "$SESSION_ID" run.json || echo "refused: $?"
    """
    done = bash(site, script)
    (session,) = site.statuses()
    assert done.stdout == f"{session}\n{session} {session}\nrefused: 4\n"


def test_generated_ids_are_all_different_and_of_version_4(bare: Site) -> None:
    made = bash(bare, "for i in $(seq 200); do generate_uuid; done").stdout.split()
    assert len(set(made)) == 200
    assert all(is_session_id(session) for session in made)
    assert {session[19] for session in made} == set("89ab")


def test_what_the_session_file_says_is_set_and_none_of_it_is_run(site: Site) -> None:
    session = site.start()
    site.mas("stop", session)
    done = bash(site, 'load_session "$1"; echo "$SESSION_ID $TMUX_SESSION $STATUS $CREATED_AT"', session)
    created = site.json("show", session)["createdAt"]
    assert done.stdout == f"{session} mas-{session[:8]} stopped {created}\n"
    own = site.session(session, ".session")
    with open(own, encoding="utf-8") as file:
        whole = file.read()
    awkward = """it's; $(touch pwned) `touch pwned` "x" \\ *"""
    lines = [line for line in whole.splitlines() if not line.startswith(("TMUX_SOCKET", "UNIT_DIR"))]
    with open(own, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, f"TMUX_SOCKET={quote(awkward)}", "UNIT_DIR=/elsewhere", "PATH=/nowhere", ""]))
    done = bash(site, 'load_session "$1"; printf "%s|%s" "$TMUX_SOCKET" "$UNIT_DIR"; true "$(ls)"', session)
    assert done.stdout == f"{awkward}|{site.session(session, 'unit')}"
    assert nothing_was_run(site)


@pytest.mark.parametrize(
    "line", ["no pair", "X=$(touch pwned)", "X=a b", "X='a' touch pwned 'b'", "SESSION_ID=550e8400", "X='"]
)
def test_an_invalid_session_file_is_refused_and_changes_nothing(site: Site, line: str) -> None:
    session = site.start()
    with open(site.session(session, ".session"), "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    done = bash(site, 'load_session "$1" || echo "refused: $?"; echo "${MAS_SESSION_ID-unset}"', session)
    assert done.stdout == "refused: 5\nunset\n", done.stderr
    assert "mas repair" in done.stderr
    os.unlink(site.session(session, ".session"))
    assert bash(site, 'load_session "$1" || echo "refused: $?"', session).stdout == "refused: 5\n"
    assert nothing_was_run(site)


def test_the_functions_are_found_by_asking_and_work_with_the_old_name_of_the_workspace(site: Site) -> None:
    session = site.start()
    found = '. "$("$MAS" env --shell-lib)"; unset MAS_WORKSPACE_ROOT; '
    script = found + 'MAS_ROOT=$2; cd /; load_session "$1"; echo "$MAS_ROOT"'
    done = bash(site, script, session, site.root)
    assert (done.returncode, done.stdout) == (0, f"{site.root}\n"), done.stderr


@pytest.mark.parametrize("hostile", [word for word in HOSTILE if word and not word.endswith("00")])
def test_what_is_no_id_creates_nothing(site: Site, hostile: str) -> None:
    done = bash(site, 'create_session_workspace "$1" || echo "refused: $?"', hostile)
    assert done.stdout == "refused: 2\n"
    assert done.stderr.startswith("error: Not a session id: ")
    assert site.statuses() == {}
    assert nothing_was_run(site)


def test_a_creation_that_fails_leaves_the_shell_as_it_was(site: Site) -> None:
    script = 'before=$(export -p); create_session_workspace "" nowhere.json || code=$?; echo "$code"'
    done = bash(site, script + '; test "$before" = "$(export -p)"')
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert "There is no file 'nowhere.json'" in done.stderr


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_unknown_session_changes_nothing_in_the_shell(site: Site, hostile: str) -> None:
    script = """
        before=$(set | grep -v '^_=\\|^BASH_LINENO\\|^PIPESTATUS\\|^before=\\|^code=\\|^FUNCNAME')
        load_session "$1" && echo loaded || code=$?
        test "$before" = "$(set | grep -v '^_=\\|^BASH_LINENO\\|^PIPESTATUS\\|^before=\\|^code=\\|^FUNCNAME')"
        echo "$code"
    """
    done = bash(site, script, hostile)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("2\n", "3\n")
    assert done.stderr.startswith("error: ")
    assert nothing_was_run(site)


def test_the_session_file_is_never_sourced(site: Site) -> None:
    session = site.start()
    with open(site.session(session, ".session"), "a", encoding="utf-8") as file:
        file.write("X=$(touch pwned)\ntouch pwned\n")
    bash(site, 'load_session "$1" || true; initialize_session_units "$2" || true', session, site.session(session))
    assert nothing_was_run(site)


def test_missing_units_are_added_and_nothing_is_touched(site: Site) -> None:
    session = site.start()
    unit, workflows = site.session(session, "unit"), site.session(session, "workflows")
    shutil.rmtree(os.path.join(unit, "10"))
    shutil.rmtree(os.path.join(unit, "11"))
    shutil.rmtree(os.path.join(unit, "12"))
    os.unlink(os.path.join(workflows, "00_meta_manager.md"))
    os.unlink(os.path.join(unit, "13", "ROLE.md"))
    os.symlink("/nonexistent", os.path.join(unit, "11"))
    elsewhere = os.path.join(site.directory, "elsewhere")
    os.mkdir(elsewhere)
    os.symlink(elsewhere, os.path.join(unit, "12"))
    with open(os.path.join(unit, "00", "ROLE.md"), "w", encoding="utf-8") as file:
        file.write("mine")
    os.chmod(site.path("unit", "10", "ROLE.md"), 0o444)
    os.symlink("ROLE.md", site.path("unit", "10", "link"))
    added = ["unit/10", "workflows/00_meta_manager.md"]
    for wanted in (added, []):
        done = bash(
            site, 'umask 077; initialize_session_units "$1"; echo "${MAS_SESSION_ID-unset}"', site.session(session)
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [*wanted, "unset"]
    assert os.readlink(os.path.join(unit, "11")) == "/nonexistent"
    assert os.listdir(elsewhere) == []
    assert os.listdir(os.path.join(unit, "13")) == []
    with open(os.path.join(unit, "00", "ROLE.md"), encoding="utf-8") as file:
        assert file.read() == "mine"
    assert os.readlink(os.path.join(unit, "10", "link")) == "ROLE.md"
    assert os.stat(os.path.join(unit, "10", "ROLE.md")).st_mode & 0o777 == 0o644
    assert os.stat(os.path.join(unit, "10")).st_mode & 0o777 == 0o755
    assert os.listdir(site.session(session, ".mas")) == ["launch"]


def test_a_unit_directory_that_is_a_link_is_refused(site: Site) -> None:
    session = site.start()
    site.mas("stop")
    elsewhere = os.path.join(site.directory, "elsewhere")
    os.mkdir(elsewhere)
    shutil.rmtree(site.session(session, "unit"))
    os.symlink(elsewhere, site.session(session, "unit"))
    done = bash(site, 'initialize_session_units "$1" || echo "refused: $?"', site.session(session))
    assert done.stdout == "refused: 5\n"
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("path", ["", "unit", ".", "/", "sessions", "sessions/.mas", "nowhere", "-P", "$(touch pwned)"])
def test_a_directory_that_is_no_session_gets_no_units(site: Site, path: str) -> None:
    site.start()
    site.mas("stop")
    before = sorted(name for _, _, names in os.walk(site.root) for name in names)
    done = bash(site, 'initialize_session_units "$1" || echo "refused: $?"', path)
    assert done.stdout in ("refused: 2\n", "refused: 3\n")
    assert done.stderr.startswith("error: ")
    assert sorted(name for _, _, names in os.walk(site.root) for name in names) == before
    assert nothing_was_run(site)


def test_a_session_of_another_workspace_gets_no_units(site: Site) -> None:
    session = site.start()
    impostor = os.path.join(site.directory, "other", "sessions", session)
    os.makedirs(os.path.join(impostor, "unit"))
    done = bash(site, 'initialize_session_units "$1" || echo "refused: $?"', impostor)
    assert done.stdout == "refused: 2\n"
    assert "is not a session of the workspace" in done.stderr
    assert os.listdir(os.path.join(impostor, "unit")) == []


def test_the_functions_also_work_in_a_careless_shell(site: Site) -> None:
    with open(site.path("run.json"), "w", encoding="utf-8") as file:
        file.write('{"team": "solo"}')
    script = """
        set +euo pipefail
        set -f; shopt -s failglob dotglob expand_aliases; IFS=abc; CDPATH=/tmp; alias cp='cp -i' mv='mv -i' mas=false
        . "$1"
        create_session_workspace "" run.json >/dev/null
        rm -r "$UNIT_DIR/33"
        initialize_session_units "$MAS_SESSION_DIR"
    """
    done = bash(site, script, SESSION_SH)
    assert (done.returncode, done.stdout) == (0, "unit/33\n"), done.stderr
