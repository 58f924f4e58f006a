// All sessions: live, searchable, many at a time.

import { memo, useCallback, useEffect, useMemo, useState, type ReactNode } from "react";
import { Count, Empty, Loading, ProblemBox, SessionBadge } from "../parts/basics.tsx";
import type { AgentState, SessionInfo, SessionList, SessionStats, Status, Team, TeamList } from "../protocol/shapes.ts";
import { useCell, useDraft, useLoaded, useNow } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { sessionHref } from "../state/route.ts";
import { teamOf } from "../state/teams.ts";
import { perform, VERBS, verbsFor, type Verb } from "../state/verbs.ts";
import { ago, bytes, count, titleOf } from "../state/words.ts";

type Filter = "all" | "lost" | Status;
type Act = (verb: Verb, on: readonly SessionInfo[]) => Promise<void>;
const NO_TEAMS: readonly Team[] = [];
const FILTERS: readonly Filter[] = ["all", "active", "stopped", "lost", "error", "archived", "deleted"];
const STATES: readonly AgentState[] = ["blocked", "error", "working", "starting", "idle", "unknown", "exited"];

export function SessionsPage(): ReactNode {
  const { live, api } = useMas();
  const listed = useCell(live.sessions);
  const [kept, keepFilter] = useDraft("filter");
  const filter = FILTERS.find((one) => one === kept) ?? "all";
  const [query, setQuery] = useDraft("search");
  const away = filter === "archived" || filter === "deleted";
  const statuses = useMemo(() => listed.value?.map((session) => session.sessionId + session.status).join(), [listed.value]);
  // These leave the list: they are asked for, and again whenever one comes or goes.
  const gone = useLoaded(
    async () => ({ filter, sessions: away ? (await api.get<SessionList>("/sessions", { status: filter })).sessions : [] }),
    [filter, statuses],
  );
  const teams = useLoaded(async () => (await api.get<TeamList>("/teams")).teams, [api]).value ?? NO_TEAMS;
  const value = away ? (gone.value?.filter === filter ? gone.value.sessions : null) : listed.value;
  const problem = away ? gone.problem : listed.problem;
  const shown = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = (value ?? []).filter(
      (session) => (filter === "all" || (filter === "lost" ? session.lost : session.status === filter)) && words.every((word) => textOf(session, teams).includes(word)),
    );
    return matching.sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1));
  }, [value, filter, query, teams]);
  return (
    <>
      <div className="bar">
        <h1>Sessions</h1>
        <input type="search" aria-label="Search sessions" placeholder="Name, id, team, agent, provider" value={query} onChange={(event) => setQuery(event.target.value)} />
        <fieldset className="chips">
          <legend className="unseen">Filter</legend>
          {FILTERS.map((one) => (
            <label key={one} className={one === filter ? "chip on" : "chip"}>
              <input type="radio" name="filter" checked={one === filter} onChange={() => keepFilter(one)} /> {one}
            </label>
          ))}
        </fieldset>
      </div>
      {problem && <ProblemBox problem={problem} retry={() => (away ? gone.again() : live.refresh())} />}
      {!value && !problem && <Loading what="sessions" />}
      {value && shown.length === 0 && <Nothing filtered={filter !== "all" || query !== ""} />}
      {shown.length > 0 && <Table sessions={shown} teams={teams} />}
    </>
  );
}

function Nothing({ filtered }: { filtered: boolean }): ReactNode {
  if (filtered) return <Empty>No session matches.</Empty>;
  return (
    <Empty>
      <p>No sessions yet. A session is a team of agents that work in their own directory.</p>
      <a className="button strong" href="#/new">Start a team</a>
    </Empty>
  );
}

function Table({ sessions, teams }: { sessions: readonly SessionInfo[]; teams: readonly Team[] }): ReactNode {
  const mas = useMas();
  const stats = useCell(mas.live.stats);
  useEffect(() => mas.live.catchUp(), [mas]);
  const now = useNow();
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState<Verb | null>(null);
  const chosen = sessions.filter((session) => marked.has(session.sessionId));
  const act = useCallback<Act>(
    async (verb, on) => {
      setBusy(verb);
      await perform(mas, verb, on);
      setMarked(new Set());
      setBusy(null);
    },
    [mas],
  );
  const mark = useCallback((ids: readonly string[], on: boolean): void => {
    setMarked((was) => {
      const next = new Set(was);
      for (const id of ids) on ? next.add(id) : next.delete(id);
      return next;
    });
  }, []);
  const tiers = sessions.some((session) => session.tier);
  return (
    <>
      {chosen.length > 0 && <Bulk chosen={chosen} busy={busy} act={act} />}
      <table className="sessions">
        <thead>
          <tr>
            <th scope="col">
              <input
                type="checkbox"
                aria-label="Select all"
                checked={chosen.length === sessions.length}
                onChange={(event) => mark(sessions.map((session) => session.sessionId), event.target.checked)}
              />
            </th>
            <th scope="col">Session</th>
            <th scope="col">Status</th>
            <th scope="col">Team</th>
            <th scope="col">Agents</th>
            {tiers && <th scope="col">Isolation</th>}
            <th scope="col" className="number">Disk</th>
            <th scope="col" className="number">Last activity</th>
            <th scope="col" className="number">Age</th>
            <th scope="col"><span className="unseen">Actions</span></th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => (
            <Row
              key={session.sessionId}
              session={session}
              team={teamOf(session, teams)}
              stats={stats.get(session.sessionId)}
              marked={marked.has(session.sessionId)}
              busy={busy !== null}
              tiers={tiers}
              now={now}
              mark={mark}
              act={act}
            />
          ))}
        </tbody>
      </table>
    </>
  );
}

interface RowProps {
  session: SessionInfo;
  team: string;
  stats: SessionStats | undefined;
  marked: boolean;
  busy: boolean;
  tiers: boolean;
  now: number;
  mark: (ids: readonly string[], on: boolean) => void;
  act: Act;
}

/** Drawn again only if it changed: there may be hundreds, and an event concerns one. */
const Row = memo(function Row({ session, team, stats, marked, busy, tiers, now, mark, act }: RowProps): ReactNode {
  const title = titleOf(session);
  return (
    <tr className={marked ? "marked" : undefined}>
      <td>
        <input type="checkbox" aria-label={`Select ${title}`} checked={marked} onChange={(event) => mark([session.sessionId], event.target.checked)} />
      </td>
      <th scope="row">
        {isGone(session) ? title : <a href={sessionHref(session.sessionId)}>{title}</a>}
        <div className="quiet">{[session.tmuxSession, providersOf(session)].filter(Boolean).join(" · ")}</div>
      </th>
      <td><SessionBadge session={session} now={now} /></td>
      <td className="team-name">{team}</td>
      <td><Agents session={session} stats={stats} /></td>
      {tiers && <td className="tier" data-label="isolation">{session.tier}</td>}
      <td className="number" data-label="disk">{stats ? bytes(stats.disk) : ""}</td>
      <td className="number" data-label="active" title={session.lastActivity}>{ago(session.lastActivity, now)}</td>
      <td className="number" data-label="age" title={session.createdAt}>{ago(session.createdAt, now)}</td>
      <td className="actions">
        {verbsFor(session.status).map((verb) => (
          <button key={verb} type="button" disabled={busy} aria-label={`${VERBS[verb].label} ${title}`} onClick={() => void act(verb, [session])}>
            {VERBS[verb].label}
          </button>
        ))}
      </td>
    </tr>
  );
});

function Bulk({ chosen, busy, act }: { chosen: readonly SessionInfo[]; busy: Verb | null; act: Act }): ReactNode {
  const verbs = (Object.keys(VERBS) as Verb[]).filter((verb) => chosen.some((session) => VERBS[verb].from.includes(session.status)));
  return (
    <div className="bulk" role="group" aria-label="Selected sessions">
      <span>{count(chosen.length, "session")} selected</span>
      {verbs.map((verb) => {
        const on = chosen.filter((session) => VERBS[verb].from.includes(session.status));
        return (
          <button key={verb} type="button" disabled={busy !== null} onClick={() => void act(verb, on)}>
            {VERBS[verb].label} {on.length}{busy === verb && "…"}
          </button>
        );
      })}
    </div>
  );
}

function Agents({ session, stats }: { session: SessionInfo; stats: SessionStats | undefined }): ReactNode {
  if (session.status !== "active" || !stats) return <span className="quiet">{count(session.agentCount, "agent")}</span>;
  return (
    <span className="counts">
      {STATES.map((state) => {
        const number = stats.states[state] ?? 0;
        return number > 0 && <Count key={state} state={state} number={number} />;
      })}
    </span>
  );
}

/** Whether there is nothing to look at before it is brought back. */
function isGone(session: SessionInfo): boolean {
  return session.status === "archived" || session.status === "deleted";
}

function providersOf(session: SessionInfo): string {
  return [...new Set(session.agents.map((agent) => agent.provider))].join(", ");
}

function textOf(session: SessionInfo, teams: readonly Team[]): string {
  const agents = session.agents.map((agent) => `${agent.role} ${agent.provider}`).join(" ");
  return `${session.name ?? ""} ${session.sessionId} ${session.tmuxSession} ${session.status} ${session.lost ? "lost" : ""} ${teamOf(session, teams)} ${agents}`.toLowerCase();
}
