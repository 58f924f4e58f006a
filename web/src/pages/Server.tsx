// The server and the machine: health, and what all sessions take.

import type { ReactNode } from "react";
import { Loading, ProblemBox } from "../parts/basics.tsx";
import { Plot } from "../parts/Plot.tsx";
import type { Diagnosis, Health } from "../protocol/shapes.ts";
import { useCell, useLoaded, useNumbers } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { linesOf, type Line } from "../state/samples.ts";
import { bytes, clock, plain } from "../state/words.ts";

function said({ status, version, isolation, failing }: Health): string {
  return `${status}${failing.length ? ` (${failing.join(", ")})` : ""}, version ${version ?? "unknown"}${isolation?.tier ? `, isolation ${isolation.tier}` : ""}`;
}

export default function ServerPage(): ReactNode {
  const mas = useMas();
  const link = useCell(mas.live.connection);
  // After a break it may be another server.
  const health = useLoaded(() => mas.api.get<Health>("/health"), [link]);
  const doctor = useLoaded(() => mas.api.get<Diagnosis>("/doctor"), []);
  const warnings = useCell(mas.live.warnings);
  return (
    <>
      <div className="bar">
        <h1>Server</h1>
        <span className="quiet" role="status">{health.value ? said(health.value) : health.problem ? health.problem.message : "…"}</span>
        <span className="grow" />
        <button type="button" onClick={() => void mas.open("/docs", { target: "_blank" })}>API</button>
        <button type="button" onClick={() => void mas.signOut()}>Sign out</button>
      </div>
      <Plots />
      <h2>Checks</h2>
      {doctor.problem && <ProblemBox problem={doctor.problem} retry={doctor.again} />}
      {!doctor.value && !doctor.problem && <Loading what="checks" />}
      <ul className="checks">
        {doctor.value?.checks.map((check) => (
          <li key={check.name} className={check.ok ? "is-idle" : "is-error"}>
            <span aria-hidden="true">{check.ok ? "✓" : "✕"}</span> <b>{check.name}</b> {check.text} {check.hint && !check.ok && <code>{check.hint}</code>}
          </li>
        ))}
      </ul>
      {warnings.length > 0 && (
        <>
          <h2>Warnings since the page was opened</h2>
          <ul className="checks">{warnings.map((event) => <li key={event.id}><time>{clock(event.at)}</time> {event.text}</li>)}</ul>
        </>
      )}
    </>
  );
}

function Plots(): ReactNode {
  const { live } = useMas();
  const { host: samples, problem } = useNumbers();
  if (problem && samples.length === 0) return <ProblemBox problem={problem} />;
  if (samples.length === 0) return <Loading what="numbers" />;
  const times = samples.map((sample) => sample.at);
  const traffic = live.traffic.lines(Date.now());
  const all = Object.keys(samples.at(-1)?.values ?? {});
  const has = (name: string): boolean => all.includes(name);
  const one = (labels: Record<string, string>): Line[] => linesOf(samples, labels);
  const by = (prefix: string): Line[] => one(Object.fromEntries(all.filter((name) => name.startsWith(prefix)).map((name) => [name, name.slice(prefix.length)])));
  const inMs = (line: Line): Line => ({ ...line, values: line.values.map((value) => value && value * 1000) });
  return (
    <div className="plots">
      {has("host.cpu") && <Plot title="CPU of the machine (cores)" times={times} lines={one({ "host.cpu": "in use", mas_cpu_cores: "by sessions" })} format={plain} />}
      {has("host.memory") && <Plot title="Memory of the machine" times={times} lines={one({ "host.memory": "total", "host.memoryFree": "free", mas_memory_bytes: "used by sessions" })} format={bytes} />}
      {has("host.disk") && <Plot title="Disk of the machine" times={times} lines={one({ "host.disk": "total", "host.diskFree": "free", mas_disk_bytes: "used by sessions" })} format={bytes} />}
      <Plot title="Messages per minute" times={traffic.times} lines={traffic.lines} format={plain} />
      <Plot title="Deliveries by state" times={times} lines={by("mas_messages.")} format={plain} />
      <Plot title="Agents by state" times={times} lines={by("mas_agents.")} format={plain} />
      <Plot title="Sessions by status" times={times} lines={by("mas_sessions.")} format={plain} />
      <Plot title="Processes of all sessions" times={times} lines={one({ mas_processes: "processes" })} format={plain} />
      <Plot title="Delay of the server (ms)" times={times} lines={one({ mas_event_loop_lag_seconds: "now", mas_event_loop_lag_max_seconds: "worst" }).map(inMs)} format={plain} />
    </div>
  );
}
