// What a session takes of the machine, and its messages, over time.

import { useMemo, type ReactNode } from "react";
import { Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import { Plot } from "../parts/Plot.tsx";
import type { AgentStats } from "../protocol/shapes.ts";
import { useCell, useNow, useNumbers } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { linesOf, type Sample } from "../state/samples.ts";
import { trafficOf } from "../state/traffic.ts";
import { bytes, plain } from "../state/words.ts";

export default function NumbersView({ session }: { session: Watched }): ReactNode {
  const { sessions, last, problem } = useNumbers();
  const samples = sessions.get(session.id) ?? [];
  const now = last?.sessions.find((one) => one.sessionId === session.id);
  return (
    <>
      {problem && <ProblemBox problem={problem} />}
      {!now && !problem && <Loading what="numbers" />}
      {now && samples.length === 0 && <Empty>The session does not run: it takes {bytes(now.disk)} of disk and nothing else.</Empty>}
      <div className="plots">
        {samples.length > 0 && <Machine samples={samples} />}
        <Messages session={session} />
      </div>
      {now?.each && now.each.length > 0 && <Each agents={now.each} />}
    </>
  );
}

function Machine({ samples }: { samples: readonly Sample[] }): ReactNode {
  const times = samples.map((sample) => sample.at);
  const states = [...new Set(samples.flatMap((sample) => Object.keys(sample.values)))].filter((name) => name.startsWith("states."));
  const limit = samples.at(-1)?.values.diskLimit !== undefined;
  return (
    <>
      <Plot title="CPU (cores)" times={times} lines={linesOf(samples, { cpu: "in use" })} format={plain} />
      <Plot title="Memory" times={times} lines={linesOf(samples, { memory: "in use" })} format={bytes} />
      <Plot title="Disk" times={times} lines={linesOf(samples, { disk: "in use", ...(limit ? { diskLimit: "at most" } : {}) })} format={bytes} />
      <Plot title="Processes" times={times} lines={linesOf(samples, { processes: "processes", liveAgents: "agents" })} format={plain} />
      <Plot title="Agents by state" times={times} lines={linesOf(samples, Object.fromEntries(states.map((name) => [name, name.slice(7)])))} format={plain} />
    </>
  );
}

function Messages({ session }: { session: Watched }): ReactNode {
  const { value } = useCell(session.messages);
  const now = useNow();
  const { times, lines } = useMemo(() => trafficOf(value ?? []).lines(now), [value, now]);
  return <Plot title="Messages per minute" times={times} lines={lines} format={plain} />;
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
