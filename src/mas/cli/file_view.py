"""What agents see of the file system, as `mas doctor --view` and `mas show --view` print it."""

from __future__ import annotations

from mas.bootstrap import view_files
from mas.cli.command import Arguments
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.model.ids import SessionId


def show_view(args: Arguments, out: Render, session_id: SessionId | None, path: str | None = None) -> int:
    """Print the view, or what of one path; exit status 1 if that is not seen."""
    if args.server:
        raise BadInput("--view shows files of this machine: run it on the machine of the workspace, without --url")
    view = view_files(args.workspace, session_id, path)
    out.result(view, lambda: out.table(("PATH", "ACCESS", "WHY"), view.paths))
    if view.hint:
        out.talk(f"next:  {view.hint}")
    return 1 if path and view.paths[0].access == "hidden" else 0
