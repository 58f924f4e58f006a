// What a session takes of the machine, over the time one looks.

import type { ReactNode } from "react";
import { Loading, ProblemBox } from "../parts/basics.tsx";
import { Plot } from "../parts/Plot.tsx";
import { path } from "../protocol/api.ts";
import type { SessionStats } from "../protocol/shapes.ts";
import { useMas } from "../state/mas.ts";
import { linesOf, numbersIn } from "../state/samples.ts";
import { useSamples } from "../state/useSamples.ts";
import { bytes } from "../state/words.ts";

const EVERY = 3000;
const KNOWN = new Set(["agents", "liveAgents", "processes", "disk"]);

export default function NumbersView({ sessionId }: { sessionId: string }): ReactNode {
  const { api } = useMas();
  const { samples, problem } = useSamples(async () => numbersIn(await api.get<SessionStats>(path`/sessions/${sessionId}/stats`)), sessionId, EVERY);
  if (problem && samples.length === 0) return <ProblemBox problem={problem} />;
  const last = samples.at(-1);
  if (!last) return <Loading what="numbers" />;
  const times = samples.map((sample) => sample.at);
  const states = Object.keys(last.values).filter((name) => name.startsWith("states."));
  const more = Object.keys(last.values).filter((name) => !KNOWN.has(name) && !states.includes(name));
  const plain = (value: number): string => String(Math.round(value * 100) / 100);
  return (
    <div className="plots">
      <Plot title="Agents by state" times={times} lines={linesOf(samples, states).map((line) => ({ ...line, label: line.label.slice(7) }))} format={plain} />
      <Plot title="Processes" times={times} lines={linesOf(samples, ["processes", "liveAgents"])} format={plain} />
      <Plot title="Disk" times={times} lines={linesOf(samples, ["disk"])} format={bytes} />
      {more.map((name) => <Plot key={name} title={name} times={times} lines={linesOf(samples, [name])} format={/mem|bytes|disk|rss/i.test(name) ? bytes : plain} />)}
    </div>
  );
}
