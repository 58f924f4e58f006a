"""The list of a user's workspaces: it helps to find them, and harms nothing where it is lost."""

from __future__ import annotations

import os
from pathlib import Path

from mas.settings import MARKER
from mas.store.workspace import known
from mas.store.workspace.known import KnownWorkspaces


def workspace(path: Path) -> str:
    path.mkdir(parents=True)
    (path / MARKER).touch()
    return str(path)


def test_a_workspace_is_on_the_list_once_and_for_as_long_as_it_exists(tmp_path: Path) -> None:
    one, other = workspace(tmp_path / "one"), workspace(tmp_path / "o ther")
    home = KnownWorkspaces({"HOME": str(tmp_path)})
    for root in (one, other, one):
        home.add(root)
    assert KnownWorkspaces({"HOME": str(tmp_path)}).all() == (one, other)
    os.unlink(os.path.join(one, MARKER))
    assert home.all() == (other,)
    path = tmp_path / ".local" / "state" / "mas" / "workspaces"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_where_no_list_can_be_it_is_empty(tmp_path: Path) -> None:
    one = workspace(tmp_path / "one")
    (tmp_path / "file").touch()
    for environ in ({}, {"HOME": "relative"}, {"XDG_STATE_HOME": str(tmp_path / "file")}):
        nothing = KnownWorkspaces(environ)
        nothing.add(one)
        assert nothing.all() == ()
    (tmp_path / "mas").mkdir()
    os.mkfifo(tmp_path / "mas" / "workspaces")
    assert KnownWorkspaces({"XDG_STATE_HOME": str(tmp_path)}).all() == ()


def test_lines_of_removed_workspaces_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "mas" / "workspaces"
    path.parent.mkdir()
    path.write_text("".join(f"/no/such/{number}\n" for number in range(known._MANY)) + "torn", "utf-8")
    one = workspace(tmp_path / "one")
    KnownWorkspaces({"XDG_STATE_HOME": str(tmp_path)}).add(one)
    assert path.read_text("utf-8") == f"{one}\n"
