// All agents of a session at once: live terminals by unit, and the organisation with messages moving along it.

import { useEffect, useId, useMemo, useRef, type CSSProperties, type ReactNode } from "react";
import { Badge } from "../parts/basics.tsx";
import { Organisation } from "../parts/Organisation.tsx";
import type { AgentView, SessionDetail } from "../protocol/shapes.ts";
import { useCell, useKeys } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { sessionHref } from "../state/route.ts";
import type { Screen, Screens } from "../terminal/screen.ts";

const MOST_COLUMNS = 4;

interface Props {
  session: Watched;
  detail: SessionDetail;
  screens: Screens;
  /** The agent one comes back from. */
  last: string | null;
}

export function TeamView({ session, detail, screens, last }: Props): ReactNode {
  const grid = useRef<HTMLDivElement>(null);
  const units = useMemo(() => byUnit(detail.agents), [detail.agents]);
  const columns = Math.min(MOST_COLUMNS, Math.max(...units.map(([, agents]) => agents.length)));
  const rows = units.reduce((sum, [, agents]) => sum + Math.ceil(agents.length / columns), 0);
  useKeys(
    useMemo(() => {
      const step = (by: number) => () => focusTile(grid.current, by);
      return { ArrowRight: step(1), ArrowLeft: step(-1), ArrowDown: step(columns), ArrowUp: step(-columns), j: step(1), k: step(-1) };
    }, [columns]),
  );
  useEffect(() => grid.current?.querySelector<HTMLElement>(`[data-tile="${last}"]`)?.focus(), []);
  // Few agents are shown larger.
  const room = { "--columns": columns, "--rows": rows, "--units": units.length } as CSSProperties;
  return (
    <div className="team" ref={grid} style={room}>
      {units.map(([unit, agents]) => (
        <section key={unit} className={agents.length === 1 && units.length > 1 ? "unit single" : "unit"} aria-label={`Unit ${unit}`}>
          <h2>{unit}</h2>
          <div className="tiles">
            {agents.map((agent) => (
              <Tile key={agent.id} agent={agent} screen={screens.of(agent.id)} href={sessionHref(detail.sessionId, "team", agent.id)} />
            ))}
            {agents.length === 1 && units.length > 1 && unit === units[0]?.[0] && (
              <Organisation session={session} agents={detail.agents} />
            )}
          </div>
        </section>
      ))}
      <p className="quiet keys wide-only">
        <kbd>←</kbd> <kbd>→</kbd> <kbd>j</kbd> <kbd>k</kbd> choose an agent · <kbd>Enter</kbd> open and type · <kbd>m</kbd> message · <kbd>Ctrl K</kbd> go to · <kbd>?</kbd> all keys
      </p>
    </div>
  );
}

function Tile({ agent, screen, href }: { agent: AgentView; screen: Screen; href: string }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const isLive = useCell(screen.isLive);
  const tail = useCell(screen.tail);
  const told = useId();
  useEffect(() => {
    const here = place.current;
    if (!here) return;
    screen.showSmall(here);
    return () => screen.leave(here);
  }, [screen]);
  return (
    <article className={`tile is-${agent.state}`} data-agent={agent.id} aria-label={`${agent.id} ${agent.role}, ${agent.state}`}>
      <header>
        <a className="cover" href={href} data-tile={agent.id} aria-describedby={told}><b>{agent.id}</b> {agent.role}</a>
        <Badge state={agent.state} source={agent.stateSource} text={agent.stateText} />
      </header>
      <p className="unseen" id={told}>{agent.state}{!isLive && ", not connected"}. {tail}</p>
      <div className={isLive ? "window" : "window away"} ref={place} aria-hidden="true" />
      {(agent.state === "blocked" || agent.report) && <footer title={agent.stateText}>{agent.state === "blocked" ? agent.stateText : agent.report}</footer>}
    </article>
  );
}

function focusTile(grid: HTMLElement | null, by: number): void {
  const tiles = [...(grid?.querySelectorAll<HTMLElement>("[data-tile]") ?? [])];
  const at = tiles.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? 0 : Math.max(0, Math.min(tiles.length - 1, at + by));
  tiles[next]?.focus();
  tiles[next]?.scrollIntoView({ block: "nearest" });
}

function byUnit(agents: readonly AgentView[]): [string, AgentView[]][] {
  const units = new Map<string, AgentView[]>();
  for (const agent of agents) units.set(agent.unit, [...(units.get(agent.unit) ?? []), agent]);
  return [...units];
}
