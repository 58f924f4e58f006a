// One session: its team, messages, files, network and numbers.

import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Count, Loading, ProblemBox, SessionBadge } from "../parts/basics.tsx";
import { ComposerDialog } from "../parts/Composer.tsx";
import { later } from "../parts/later.tsx";
import { OpenPort } from "../parts/Ports.tsx";
import type { AgentState, SessionDetail, SessionInfo } from "../protocol/shapes.ts";
import { useCell, useKeys, useLoaded, useNow, useWatched } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { useMas } from "../state/mas.ts";
import { insideOf, type Inside } from "../state/ports.ts";
import { isId, sessionHref, withId, type Route, type Tab } from "../state/route.ts";
import { perform, VERBS, verbsFor, type Verb } from "../state/verbs.ts";
import { gapsOf } from "../state/words.ts";
import { Screens } from "../terminal/screen.ts";
import { AgentView } from "./Agent.tsx";
import { FilesView } from "./Files.tsx";
import { MessagesView } from "./Messages.tsx";
import { TeamView } from "./Team.tsx";

const NetworkView = later(() => import("./Network.tsx"));
const NumbersView = later(() => import("./Numbers.tsx"));

type Here = Extract<Route, { page: "session" }>;
const TABS: readonly [Tab, string][] = [
  ["team", "Team"],
  ["messages", "Messages"],
  ["files", "Files"],
  ["network", "Network"],
  ["numbers", "Usage"],
];

export default function SessionPage({ route }: { route: Here }): ReactNode {
  return isId(route.id) ? <ById route={route} /> : <ByName name={route.id} />;
}

/** Finds the session that an address names, and goes on with its id: that stays good when the session is renamed. */
function ByName({ name }: { name: string }): ReactNode {
  const { api } = useMas();
  const { value, problem, again } = useLoaded(() => api.get<SessionInfo>("/resolve", { reference: name }), [name]);
  useEffect(() => {
    if (value) location.replace(withId(location.hash, value.sessionId));
  }, [value]);
  return problem ? <ProblemBox problem={problem} retry={again} /> : <Loading what="the session" />;
}

function ById({ route }: { route: Here }): ReactNode {
  const session = useWatched(route.id);
  if (!session) return <Loading what="the session" />;
  return <Known route={route} session={session} />;
}

function Known({ route, session }: { route: Here; session: Watched }): ReactNode {
  const { value: detail, problem } = useCell(session.detail);
  useEffect(() => void session.fetchMessages(), [session]);
  if (!detail) return problem ? <ProblemBox problem={problem} retry={() => void session.fetchDetail()} /> : <Loading what="the session" />;
  return <Shown route={route} session={session} detail={detail} />;
}

function Shown({ route, session, detail }: { route: Here; session: Watched; detail: SessionDetail }): ReactNode {
  const mas = useMas();
  const now = useNow();
  const [inside, setInside] = useState<Inside | null>(null);
  const screens = useScreens(route.id, setInside);
  const [composing, setComposing] = useState<string | null>(null);
  const compose = useCallback(() => {
    // Where there is a place to write, a second one would have the same words.
    const here = document.querySelector<HTMLElement>(".timeline textarea");
    here ? here.focus() : setComposing(meant() ?? route.agent ?? "all");
  }, [route.agent]);
  useKeys(useMemo(() => ({ m: compose }), [compose]));
  const last = useRef<string | null>(null);
  useEffect(() => {
    last.current = route.agent ?? last.current;
  }, [route.agent]);
  const [busy, setBusy] = useState<Verb | null>(null);
  const act = async (verb: Verb): Promise<void> => {
    setBusy(verb);
    const done = await perform(mas, verb, [detail]);
    if (done && (verb === "delete" || verb === "archive")) location.hash = "#/";
    else await session.fetchDetail();
    setBusy(null);
  };
  const agent = detail.agents.find((one) => one.id === route.agent);
  return (
    <div className="session">
      <div className="bar">
        <h1 className="name">
          <a href={sessionHref(route.id)}>{detail.name ?? detail.tmuxSession}</a>
        </h1>
        <SessionBadge session={detail} now={now} />
        {detail.reason && <span className="quiet">{detail.reason}</span>}
        {detail.isolation && (
          <span className="quiet" title={["How well the kernel isolates its agents", gapsOf(detail.isolation)].filter(Boolean).join("\n")}>
            isolation {detail.isolation.tier}
          </span>
        )}
        {detail.status === "active" && <States agents={detail.agents} />}
        <nav className="tabs" aria-label="This session">
          {TABS.map(([tab, label]) => (
            <a key={tab} href={sessionHref(route.id, tab)} aria-current={route.tab === tab ? "page" : undefined}>{label}</a>
          ))}
        </nav>
        <span className="grow" />
        <button type="button" onClick={compose}>Message <kbd>m</kbd></button>
        {verbsFor(detail.status).map((verb) => (
          <button key={verb} type="button" disabled={busy !== null} onClick={() => void act(verb)}>{VERBS[verb].label}{busy === verb && "…"}</button>
        ))}
      </div>
      {screens && route.tab === "team" && !agent && <TeamView session={session} detail={detail} screens={screens} last={last.current} />}
      {screens && route.tab === "team" && agent && <AgentView key={agent.id} agent={agent} detail={detail} session={session} screens={screens} />}
      {route.tab === "messages" && <MessagesView session={session} detail={detail} />}
      {route.tab === "files" && <FilesView detail={detail} file={route.file} />}
      {route.tab === "network" && <NetworkView session={session} detail={detail} />}
      {route.tab === "numbers" && <NumbersView session={session} />}
      {inside && <OpenPort id={route.id} inside={inside} close={() => setInside(null)} />}
      {composing !== null && <ComposerDialog session={session} detail={detail} target={composing} close={() => setComposing(null)} />}
    </div>
  );
}

const ORDER: readonly AgentState[] = ["blocked", "error", "working", "starting", "idle", "exited", "unknown"];

/** How many agents are in which state. */
function States({ agents }: { agents: SessionDetail["agents"] }): ReactNode {
  const counted = ORDER.map((state) => [state, agents.filter((agent) => agent.state === state).length] as const);
  return <span className="counts">{counted.map(([state, number]) => number > 0 && <Count key={state} state={state} number={number} />)}</span>;
}

/** The agent whose tile has the focus. */
function meant(): string | undefined {
  return document.activeElement?.closest<HTMLElement>("[data-agent]")?.dataset.agent;
}

/** The session's terminals; they outlive a change of tab. */
function useScreens(id: string, ask: (inside: Inside) => void): Screens | null {
  const { mux } = useMas();
  const [screens, setScreens] = useState<Screens | null>(null);
  useEffect(() => {
    const made = new Screens(mux, id, (address) => {
      const inside = insideOf(address);
      inside ? ask(inside) : window.open(address, "_blank", "noopener,noreferrer");
    });
    setScreens(made);
    return () => made.dispose();
  }, [mux, id, ask]);
  return screens;
}
