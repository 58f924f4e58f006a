// The organisation as a tree: where each agent stands, and which way a message goes.

import type { AgentRun } from "../protocol/shapes.ts";

export interface Node {
  id: string;
  x: number;
  y: number;
  boss: string | null;
}

/** Places in a box of 100 by 100: the first unit's only agent on top, managers below, their units beneath them. */
export function layout(agents: readonly Pick<AgentRun, "id" | "unit">[]): Node[] {
  const units = new Map<string, string[]>();
  for (const agent of agents) units.set(agent.unit, [...(units.get(agent.unit) ?? []), agent.id]);
  const groups = [...units.values()];
  const top = groups.length > 1 && groups[0]?.length === 1 ? (groups.shift()?.[0] ?? null) : null;
  const leaves = groups.reduce((sum, group) => sum + Math.max(1, group.length - 1), 0);
  const nodes: Node[] = top === null ? [] : [{ id: top, x: 50, y: 14, boss: null }];
  const levels = top === null ? [22, 78] : [50, 86];
  let at = 0;
  for (const [manager = "", ...workers] of groups) {
    const width = Math.max(1, workers.length);
    nodes.push({ id: manager, x: (100 * (at + width / 2)) / leaves, y: levels[0] ?? 50, boss: top });
    workers.forEach((worker, number) => nodes.push({ id: worker, x: (100 * (at + number + 0.5)) / leaves, y: levels[1] ?? 86, boss: manager }));
    at += width;
  }
  return nodes;
}

/** The nodes a message passes from one to another: up to the manager both have in common, and down again. */
export function route(nodes: readonly Node[], from: string, to: string): Node[] {
  const chain = (id: string): Node[] => {
    const found: Node[] = [];
    for (let node = nodes.find((one) => one.id === id); node; node = nodes.find((one) => one.id === node?.boss)) found.push(node);
    return found;
  };
  const up = chain(from);
  const down = chain(to);
  if (down.length === 0) return [];
  // People are above everybody.
  if (up.length === 0) return [{ id: from, x: down.at(-1)?.x ?? 50, y: 0, boss: null }, ...down.reverse()];
  const shared = up.find((node) => down.includes(node));
  if (!shared) return [...up.slice(0, 1), ...down.slice(0, 1)];
  return [...up.slice(0, up.indexOf(shared) + 1), ...down.slice(0, down.indexOf(shared)).reverse()];
}
