// The server and the machine: health, and what all sessions take.

import type { ReactNode } from "react";
import { Loading, ProblemBox } from "../parts/basics.tsx";
import { Plot } from "../parts/Plot.tsx";
import type { Check, Stats } from "../protocol/shapes.ts";
import { useCell, useLoaded } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { linesOf, numbersIn, parseMetrics } from "../state/samples.ts";
import { bytes, clock } from "../state/words.ts";
import { useSamples } from "../state/useSamples.ts";

const EVERY = 5000;

interface Health {
  status: string;
  version: string;
  isolation?: { tier?: string };
}

function said({ status, version, isolation }: Health): string {
  return `${status}, version ${version}${isolation?.tier ? `, isolation ${isolation.tier}` : ""}`;
}

export default function ServerPage(): ReactNode {
  const mas = useMas();
  const health = useLoaded(() => mas.api.get<Health>("/health"), []);
  const doctor = useLoaded(() => mas.api.get<{ checks: Check[]; ok: boolean }>("/doctor"), []);
  const warnings = useCell(mas.live.warnings);
  return (
    <>
      <div className="bar">
        <h1>Server</h1>
        <span className="quiet">{health.value && said(health.value)}</span>
        <span className="grow" />
        <a className="button" href="/docs">API</a>
        <button type="button" onClick={() => void mas.api.post("/logout").finally(() => location.reload())}>Sign out</button>
      </div>
      <Numbers />
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
          <ul className="checks">{warnings.map((event) => <li key={event.id}><time>{clock(event.at)}</time> {String(event.text ?? "")}</li>)}</ul>
        </>
      )}
    </>
  );
}

function Numbers(): ReactNode {
  const { api } = useMas();
  const take = async (): Promise<Record<string, number>> => {
    const [metrics, stats] = await Promise.all([api.text("/metrics"), api.get<Stats>("/stats")]);
    return { ...parseMetrics(metrics), ...numbersIn({ host: stats.host ?? {} }) };
  };
  const { samples, problem } = useSamples(take, "metrics", EVERY);
  if (problem && samples.length === 0) return <ProblemBox problem={problem} />;
  if (samples.length === 0) return <Loading what="numbers" />;
  const times = samples.map((sample) => sample.at);
  const named = (prefix: string): { label: string; values: (number | null)[] }[] => {
    const names = Object.keys(samples.at(-1)?.values ?? {}).filter((name) => name.startsWith(prefix));
    return linesOf(samples, names).map((line) => ({ ...line, label: line.label.slice(prefix.length) }));
  };
  const one = (name: string, label: string): { label: string; values: (number | null)[] }[] => linesOf(samples, [name]).map((line) => ({ ...line, label }));
  const has = (name: string): boolean => name in (samples.at(-1)?.values ?? {});
  const whole = (value: number): string => String(Math.round(value * 10) / 10);
  return (
    <div className="plots">
      {has("host.cpu") && <Plot title="CPU of the machine (cores)" times={times} lines={one("host.cpu", "used")} format={whole} />}
      {has("host.memoryFree") && <Plot title="Memory of the machine" times={times} lines={[...one("host.memoryFree", "free"), ...one("host.memory", "all")]} format={bytes} />}
      {has("host.diskFree") && <Plot title="Disk of the machine" times={times} lines={[...one("host.diskFree", "free"), ...one("host.disk", "all")]} format={bytes} />}
      <Plot title="Sessions by status" times={times} lines={named("mas_sessions.")} format={whole} />
      <Plot title="Agents by state" times={times} lines={named("mas_agents.")} format={whole} />
      <Plot title="Messages by state" times={times} lines={named("mas_messages.")} format={whole} />
      <Plot title="Disk of all sessions" times={times} lines={one("mas_disk_bytes", "disk")} format={bytes} />
      <Plot title="Processes of all sessions" times={times} lines={one("mas_processes", "processes")} format={whole} />
      <Plot title="How late the server is (ms)" times={times} lines={one("mas_event_loop_lag_seconds", "lag").map((line) => ({ ...line, values: line.values.map((value) => (value === null ? null : value * 1000)) }))} format={whole} />
    </div>
  );
}
