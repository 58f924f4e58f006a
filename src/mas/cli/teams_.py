"""mas teams: List the teams that you can start, or print one as a TOML file to base your own on."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, looked_at
from mas.cli.listing import add_output
from mas.cli.render import Render
from mas.model.catalog import TeamList, TeamView
from mas.model.teamfile import shipped_teams, team_file, view_in

SUMMARY = "list the teams, or print one"
EXAMPLES = """
mas teams
mas teams dev
mkdir -p templates/teams && mas teams dev > templates/teams/mine.toml
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("team", nargs="?", metavar="TEAM", help="the team to print (default: list all)")
    add_output(parser, "names")


def run(args: Arguments, out: Render) -> int:
    teams = looked_at(args, lambda mas: mas.teams(), shipped_teams)
    if args.team is None and (args.quiet or args.output == "name"):
        out.raw("".join(f"{team.name}\n" for team in teams))
    elif args.team is None:
        out.result(TeamList(teams), lambda: _list(teams, out))
    else:
        team = view_in(teams, args.team)
        out.result(team, lambda: out.raw(team_file(team)))
    return 0


def _list(teams: tuple[TeamView, ...], out: Render) -> None:
    out.table(
        ("TEAM", "AGENTS", "ROUTING", "FROM", "DESCRIPTION"),
        [
            (team.name, str(team.agent_count), team.routing, team.origin, team.problem or team.description)
            for team in teams
        ],
    )
