// What the start form asks the API for.

import type { FieldError } from "../protocol/api.ts";
import type { AgentBody, RunBody, Team, TeamAgent, TeamBody, UnitBody } from "../protocol/shapes.ts";

export interface Wanted {
  provider: string;
  model: string;
  prompt: string;
}

export interface RunForm {
  name: string;
  team: string;
  provider: string;
  isolation: string;
  limits: Record<string, string>;
  /** By agent id, what differs from the team. */
  agents: Record<string, Partial<Wanted>>;
}

type Body = Record<string, unknown>;
/** A body of the API with values that the server looks at. */
type Unchecked<Known> = Partial<Record<keyof Known, unknown>>;

/** The body of `POST /runs`. Agents are named only if one of them differs from the team. */
export function runBody(form: RunForm, team: Team | undefined): Unchecked<RunBody> {
  const body: Unchecked<RunBody> = {};
  if (form.name.trim()) body.name = form.name.trim();
  if (form.team) body.team = form.team;
  if (form.provider) body.provider = form.provider;
  if (form.isolation) body.isolation = form.isolation;
  const limits = limitsBody(form.limits);
  if (Object.keys(limits).length > 0) body.limits = limits;
  if (team && Object.values(form.agents).some((wanted) => Object.values(wanted).some(Boolean))) {
    body.agents = agentsBody(form, team);
    // A run that names its agents has these of no team.
    if (team.routing !== "hierarchy") body.routing = team.routing === "table" ? team.routes : team.routing;
    Object.assign(body, withValues({ restart: team.restart, restartLimit: team.restartLimit } satisfies Partial<RunBody>));
  }
  return body;
}

/** Limits by name; `agent.memory` is a field of a field. */
function limitsBody(given: Record<string, string>): Body {
  const made: Body = {};
  for (const [name, value] of Object.entries(given)) {
    if (!value.trim()) continue;
    const [first = "", second] = name.split(".");
    if (second === undefined) made[first] = numberOr(value.trim());
    else made[first] = { ...(made[first] as Body | undefined), [second]: numberOr(value.trim()) };
  }
  return made;
}

function agentsBody(form: RunForm, team: Team): Unchecked<TeamBody> {
  const made: Unchecked<TeamBody> = {};
  const units: Unchecked<UnitBody>[] = [];
  for (const [place, unit] of team.units.entries()) {
    const [first, ...rest] = unit.agents.map((agent) => agentBody(agent, form.agents[agent.id] ?? {}));
    if (unit.name === "meta" && place === 0 && rest.length === 0) made.metaManager = first;
    else units.push({ name: unit.name, manager: first, workers: rest });
  }
  if (units.length > 0) made.units = units;
  return made;
}

function agentBody(agent: TeamAgent, wanted: Partial<Wanted>): Body {
  const fields = {
    id: agent.id,
    role: agent.role,
    provider: wanted.provider || agent.provider,
    model: wanted.model || agent.model,
    prompt: wanted.prompt || agent.prompt,
    command: agent.command,
    restart: agent.restart,
    restartLimit: agent.restartLimit,
  } satisfies AgentBody;
  const limits = withValues(agent.limits);
  return withValues(Object.keys(limits).length > 0 ? { ...fields, limits } : fields);
}

/** The fields that have a value. */
function withValues(fields: Body): Body {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ""));
}

function numberOr(text: string): number | string {
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

/** What the API says is wrong with a field such as `name` or `limits.agent.cpu`; empty if nothing. */
export function errorFor(errors: readonly FieldError[], field: string): string {
  const path = `body.${field}`;
  return errors.find(({ where }) => where === path || where.startsWith(`${path}.`))?.what ?? "";
}
