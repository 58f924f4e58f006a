"""What agents see of the file system, as `mas doctor --view` and `mas show --view` print it."""

from __future__ import annotations

from mas.bootstrap import find_missed_files, view_files
from mas.cli.command import Arguments
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.model.ids import SessionId


def show_view(args: Arguments, out: Render, session_id: SessionId | None, path: str | None = None) -> int:
    """Print the view, or what of one path; exit status 1 if that is not seen."""
    _only_here(args)
    view = view_files(args.workspace, session_id, path)
    out.result(view, lambda: out.table(("PATH", "ACCESS", "WHY"), view.paths))
    if view.hint:
        out.talk(f"next:  {view.hint}")
    return 1 if path and view.paths[0].access == "hidden" else 0


def show_missed(args: Arguments, out: Render, argv: list[str]) -> int:
    """Run a program and print what of it agents would miss; exit status 1 if there is something."""
    _only_here(args)
    if not argv:
        raise BadInput("No command given", "mas doctor --trace COMMAND …")
    missed = find_missed_files(args.workspace, argv)
    if not missed.paths:
        out.result(missed, lambda: out.line("Agents see every file that this command used"))
        return 0
    out.result(missed, lambda: out.table(("PATH", "ACCESS", "WHY"), missed.paths))
    out.talk(f"next:  {missed.hint}")
    return 1


def _only_here(args: Arguments) -> None:
    if args.server:
        raise BadInput("This shows files of this machine: run it on the machine of the workspace, without --url")
