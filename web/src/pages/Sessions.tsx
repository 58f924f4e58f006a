// All sessions: live, searchable, many at a time.

import { useEffect, useMemo, useState, type ReactNode } from "react";
import { Badge, Count, Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import type { AgentState, SessionInfo, SessionList, SessionStats, Status } from "../protocol/shapes.ts";
import { useCell, useLoaded, useNow } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { sessionHref } from "../state/route.ts";
import { perform, VERBS, verbsFor, type Verb } from "../state/verbs.ts";
import { ago, bytes, count } from "../state/words.ts";

type Filter = "all" | Status;
const FILTERS: readonly Filter[] = ["all", "active", "stopped", "error", "archived", "deleted"];
const STATES: readonly AgentState[] = ["blocked", "error", "working", "starting", "idle", "unknown", "exited"];

export function SessionsPage(): ReactNode {
  const { live, api } = useMas();
  const listed = useCell(live.sessions);
  const [filter, setFilter] = useState<Filter>("all");
  const [query, setQuery] = useState("");
  const away = filter === "archived" || filter === "deleted";
  const statuses = useMemo(() => listed.value?.map((session) => session.sessionId + session.status).join(), [listed.value]);
  // These leave the list: they are asked for, and again whenever one comes or goes.
  const gone = useLoaded(
    async () => (away ? (await api.get<SessionList>("/sessions", { status: filter })).sessions : []),
    [filter, statuses],
  );
  const { value, problem } = away ? gone : listed;
  const shown = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = (value ?? []).filter(
      (session) => (filter === "all" || session.status === filter) && words.every((word) => textOf(session).includes(word)),
    );
    return matching.sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1));
  }, [value, filter, query]);
  return (
    <>
      <div className="bar">
        <h1>Sessions</h1>
        <input type="search" aria-label="Search sessions" placeholder="Name, id, agent, provider" value={query} onChange={(event) => setQuery(event.target.value)} />
        <fieldset className="chips">
          <legend className="unseen">Which</legend>
          {FILTERS.map((one) => (
            <label key={one} className={one === filter ? "chip on" : "chip"}>
              <input type="radio" name="filter" checked={one === filter} onChange={() => setFilter(one)} /> {one}
            </label>
          ))}
        </fieldset>
      </div>
      {problem && <ProblemBox problem={problem} retry={() => (away ? gone.again() : live.refresh())} />}
      {!value && !problem && <Loading what="sessions" />}
      {value && shown.length === 0 && <Nothing filtered={filter !== "all" || query !== ""} />}
      {shown.length > 0 && <Table sessions={shown} />}
    </>
  );
}

function Nothing({ filtered }: { filtered: boolean }): ReactNode {
  if (filtered) return <Empty>No session is like that.</Empty>;
  return (
    <Empty>
      <p>No sessions yet. A session is one team of agents in a directory of its own.</p>
      <a className="button strong" href="#/new">Start a team</a>
    </Empty>
  );
}

function Table({ sessions }: { sessions: readonly SessionInfo[] }): ReactNode {
  const mas = useMas();
  const stats = useCell(mas.live.stats);
  useEffect(() => mas.live.catchUp(), [mas]);
  const now = useNow();
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const chosen = sessions.filter((session) => marked.has(session.sessionId));
  const act = async (verb: Verb, on: readonly SessionInfo[]): Promise<void> => {
    setBusy(true);
    await perform(mas, verb, on);
    setMarked(new Set());
    setBusy(false);
  };
  const mark = (ids: readonly string[], on: boolean): void => {
    const next = new Set(marked);
    for (const id of ids) on ? next.add(id) : next.delete(id);
    setMarked(next);
  };
  const tiers = sessions.some(tierOf);
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
            <th scope="col">Agents</th>
            {tiers && <th scope="col">Isolation</th>}
            <th scope="col" className="number">Disk</th>
            <th scope="col" className="number">Active</th>
            <th scope="col" className="number">Age</th>
            <th scope="col"><span className="unseen">What to do</span></th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => {
            const numbers = stats.get(session.sessionId);
            const title = session.name ?? session.tmuxSession;
            return (
              <tr key={session.sessionId} className={marked.has(session.sessionId) ? "marked" : undefined}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Select ${title}`}
                    checked={marked.has(session.sessionId)}
                    onChange={(event) => mark([session.sessionId], event.target.checked)}
                  />
                </td>
                <th scope="row">
                  {isGone(session) ? title : <a href={sessionHref(session.sessionId)}>{title}</a>}
                  <div className="quiet">{[session.tmuxSession, providersOf(session)].filter(Boolean).join(" · ")}</div>
                </th>
                <td><Badge state={session.status} /></td>
                <td><Agents session={session} stats={numbers} /></td>
                {tiers && <td>{tierOf(session)}</td>}
                <td className="number" data-label="disk">{numbers ? bytes(numbers.disk) : ""}</td>
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
          })}
        </tbody>
      </table>
    </>
  );
}

function Bulk({ chosen, busy, act }: { chosen: readonly SessionInfo[]; busy: boolean; act: (verb: Verb, on: readonly SessionInfo[]) => Promise<void> }): ReactNode {
  const verbs = (Object.keys(VERBS) as Verb[]).filter((verb) => chosen.some((session) => VERBS[verb].from.includes(session.status)));
  return (
    <div className="bulk" role="group" aria-label="With the selected">
      <span>{count(chosen.length, "session")} selected</span>
      {verbs.map((verb) => {
        const on = chosen.filter((session) => VERBS[verb].from.includes(session.status));
        return (
          <button key={verb} type="button" disabled={busy} onClick={() => void act(verb, on)}>
            {VERBS[verb].label} {on.length}
          </button>
        );
      })}
    </div>
  );
}

function Agents({ session, stats }: { session: SessionInfo; stats: SessionStats | undefined }): ReactNode {
  if (session.status !== "active" || !stats) return <span className="quiet">{session.agentCount}</span>;
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

function tierOf(session: SessionInfo): string {
  return session.tier ?? "";
}

function providersOf(session: SessionInfo): string {
  return [...new Set(session.agents.map((agent) => agent.provider))].join(", ");
}

function textOf(session: SessionInfo): string {
  const agents = session.agents.map((agent) => `${agent.role} ${agent.provider}`).join(" ");
  return `${session.name ?? ""} ${session.sessionId} ${session.tmuxSession} ${session.status} ${agents}`.toLowerCase();
}
