// Which of the known teams a session has.

import type { SessionInfo, Team } from "../protocol/shapes.ts";

type Member = { id: string; unit: string };

/** The team with just these agents in these units; where there is none, the units themselves. */
export function teamOf(session: Pick<SessionInfo, "agents">, teams: readonly Team[]): string {
  const own = shape(session.agents);
  const found = teams.find((team) => shape(team.units.flatMap((unit) => unit.agents.map(({ id }) => ({ id, unit: unit.name })))) === own);
  return found?.name ?? [...new Set(session.agents.map((agent) => agent.unit))].join(", ");
}

function shape(members: readonly Member[]): string {
  return members.map(({ id, unit }) => `${id} ${unit}`).sort().join();
}
