// What a session takes of the machine, over the time one looks.

import { useState, type ReactNode } from "react";
import { Loading, ProblemBox } from "../parts/basics.tsx";
import { Plot } from "../parts/Plot.tsx";
import { path } from "../protocol/api.ts";
import type { AgentStats, SessionStats } from "../protocol/shapes.ts";
import { useMas } from "../state/mas.ts";
import { linesOf, numbersIn } from "../state/samples.ts";
import { useSamples } from "../state/useSamples.ts";
import { bytes } from "../state/words.ts";

const EVERY = 3000;

export default function NumbersView({ sessionId }: { sessionId: string }): ReactNode {
  const { api } = useMas();
  const [each, setEach] = useState<AgentStats[]>([]);
  const take = async (): Promise<Record<string, number>> => {
    const stats = await api.get<SessionStats>(path`/sessions/${sessionId}/stats`);
    setEach(stats.each ?? []);
    return numbersIn(stats);
  };
  const { samples, problem } = useSamples(take, sessionId, EVERY);
  if (problem && samples.length === 0) return <ProblemBox problem={problem} />;
  const last = samples.at(-1)?.values;
  if (!last) return <Loading what="numbers" />;
  const times = samples.map((sample) => sample.at);
  const states = Object.keys(last).filter((name) => name.startsWith("states."));
  const plain = (value: number): string => String(Math.round(value * 100) / 100);
  // Servers tell what they can measure.
  const has = (name: string): boolean => name in last;
  return (
    <>
      <div className="plots">
        {has("cpu") && <Plot title="CPU (cores)" times={times} lines={linesOf(samples, ["cpu"])} format={plain} />}
        {has("memory") && <Plot title="Memory" times={times} lines={linesOf(samples, ["memory"])} format={bytes} />}
        <Plot title="Disk" times={times} lines={linesOf(samples, has("diskLimit") ? ["disk", "diskLimit"] : ["disk"])} format={bytes} />
        <Plot title="Processes" times={times} lines={linesOf(samples, ["processes", "liveAgents"])} format={plain} />
        <Plot title="Agents by state" times={times} lines={linesOf(samples, states).map((line) => ({ ...line, label: line.label.slice(7) }))} format={plain} />
      </div>
      {each.length > 0 && <Each agents={each} />}
    </>
  );
}

function Each({ agents }: { agents: readonly AgentStats[] }): ReactNode {
  return (
    <table className="sessions">
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col" className="number">CPU (cores)</th>
          <th scope="col" className="number">Memory</th>
          <th scope="col" className="number">Processes</th>
        </tr>
      </thead>
      <tbody>
        {agents.map((agent) => (
          <tr key={agent.id}>
            <th scope="row">{agent.id}</th>
            <td className="number" data-label="CPU">{agent.cpu.toFixed(2)}</td>
            <td className="number" data-label="memory">{bytes(agent.memory)}</td>
            <td className="number" data-label="processes">{agent.processes}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
