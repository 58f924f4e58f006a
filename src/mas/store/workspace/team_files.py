"""Team files of the workspace: `templates/teams/*.toml`, each a team that a session can be started with by name."""

from __future__ import annotations

import os

from mas.model.catalog import TeamView
from mas.model.errors import BadInput
from mas.model.teamfile import broken_team, parse_team_file, shipped_teams
from mas.store.layout import Layout

_ENDING = ".toml"


class Teams:
    """The workspace's own teams and those that come with MAS; one of its own wins."""

    def __init__(self, layout: Layout) -> None:
        self._directory = layout.at("templates", "teams")

    def all(self) -> tuple[TeamView, ...]:
        """Every team on offer, the shipped ones first; one whose file describes none has a `problem`."""
        found = {team.name: team for team in shipped_teams()}
        for name in self._names():
            found[name] = self._read(name)
        return tuple(found.values())

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))

    def _read(self, name: str) -> TeamView:
        import tomllib

        path = os.path.join(self._directory, name + _ENDING)
        try:
            with open(path, "rb") as file:
                return parse_team_file(tomllib.load(file), name)
        except (ValueError, RecursionError) as error:
            return broken_team(name, f"{path} is not TOML: {error}")
        except BadInput as error:
            return broken_team(name, f"{path}: {error.message}")
        except OSError as error:
            return broken_team(name, f"{path} cannot be read: {error.strerror}")
