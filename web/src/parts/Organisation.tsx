// The team drawn as a tree; each message that is typed to an agent is a dot that moves there.

import { useEffect, useMemo, useState, type ReactNode } from "react";
import type { AgentView } from "../protocol/shapes.ts";
import type { Watched } from "../state/live.ts";
import { sessionHref } from "../state/route.ts";
import { layout, route } from "./tree.ts";

const WIDTH = 560;
const HEIGHT = 170;
const TRAVEL = 1200;
const MOST_DOTS = 40;

interface Dot {
  key: string;
  way: string;
}

export function Organisation({ session, agents }: { session: Watched; agents: readonly AgentView[] }): ReactNode {
  const shape = agents.map((agent) => `${agent.id}/${agent.unit}`).join();
  // The tree is the same while only states change.
  const nodes = useMemo(() => layout(agents), [shape]);
  const [dots, setDots] = useState<readonly Dot[]>([]);
  useEffect(
    () =>
      session.moved.subscribe(() => {
        const moved = session.moved.get();
        for (const to of moved?.to ?? []) {
          const stops = route(nodes, moved?.from ?? "", to);
          if (stops.length < 2) continue;
          const way = stops.map((node, number) => `${number ? "L" : "M"}${x(node.x)},${y(node.y)}`).join("");
          const dot = { key: `${moved?.id}/${to}/${moved?.at}`, way };
          setDots((known) => [...known.slice(-MOST_DOTS), dot]);
          setTimeout(() => setDots((known) => known.filter((one) => one !== dot)), TRAVEL);
        }
      }),
    [session, nodes],
  );
  return (
    <svg className="organisation" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="Organisation">
      {nodes.map((node) => {
        const boss = nodes.find((one) => one.id === node.boss);
        return boss && <path key={node.id} className="edge" d={`M${x(boss.x)},${y(boss.y)}L${x(node.x)},${y(node.y)}`} />;
      })}
      {dots.map((dot) => (
        <circle key={dot.key} className="dot" r="5" style={{ offsetPath: `path("${dot.way}")` }} />
      ))}
      {nodes.map((node) => {
        const agent = agents.find((one) => one.id === node.id);
        return (
          <a key={node.id} href={sessionHref(session.id, "team", node.id)} aria-label={`${node.id} ${agent?.role ?? ""}, ${agent?.state ?? ""}`}>
            <g className={`node is-${agent?.state ?? "unknown"}`} transform={`translate(${x(node.x)},${y(node.y)})`}>
              <circle r="17" />
              <text textAnchor="middle" dy="5">{node.id}</text>
              <title>{agent ? `${agent.role}: ${agent.state}` : node.id}</title>
            </g>
          </a>
        );
      })}
    </svg>
  );
}

function x(part: number): number {
  return 18 + (part / 100) * (WIDTH - 36);
}

function y(part: number): number {
  return (part / 100) * HEIGHT;
}
