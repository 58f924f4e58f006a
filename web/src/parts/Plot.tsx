// A plot over time.

import { useEffect, useRef, type ReactNode } from "react";
import uPlot from "uplot";
import type { Line } from "../state/samples.ts";

// Told apart by lightness as well as by colour.
const STROKES = ["#0d8a8a", "#d0651f", "#7d63c9", "#b8860b", "#7c8a96", "#c2418d", "#4b8b2f"];
const HEIGHT = 170;
// Seconds that a plot shows at least.
const SHORTEST = 60;

export function Plot({ title, times, lines, format }: { title: string; times: number[]; lines: Line[]; format: (value: number) => string }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const labels = lines.map((line) => line.label).join("|");
  const data = [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  useEffect(() => {
    const here = place.current;
    if (!here) return;
    // Asked for at each drawing: light may have become dark.
    const ink = (): string => getComputedStyle(here).color;
    const grid = { stroke: "rgba(128,128,128,.2)", width: 1 };
    const axis = { stroke: ink, grid, ticks: grid };
    const made = new uPlot(
      {
        width: here.clientWidth || 300,
        height: HEIGHT,
        series: [{}, ...lines.map((line, number) => ({ label: line.label, stroke: STROKES[number % STROKES.length] as string, width: 2, spanGaps: false }))],
        axes: [{ ...axis, size: 30, values: (_, ticks) => ticks.map(clockOf) }, { ...axis, size: 70, values: (_, ticks) => ticks.map(format) }],
        scales: { x: { range: shown }, y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(1, (most ?? 1) * 1.1)] } },
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
      },
      data,
      here,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: here.clientWidth, height: HEIGHT }));
    resized.observe(here);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
    // New values are given to the plot there is.
  }, [labels]);
  useEffect(() => plot.current?.setData(data), [times]);
  return (
    <figure className="plot">
      <figcaption>{title} <span className="quiet">since {clockOf(times[0] ?? 0)}</span></figcaption>
      <div ref={place} aria-hidden="true" />
      <ul className="legend" aria-label={`${title}, now`}>
        {lines.map((line, number) => (
          <li key={line.label}>
            <span className="swatch" style={{ background: STROKES[number % STROKES.length] }} aria-hidden="true" />
            {line.label} <b>{format(line.values.at(-1) ?? 0)}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** A moment on the axis; seconds only where the ticks are nearer than a minute. */
function clockOf(seconds: number): string {
  const at = new Date(seconds * 1000);
  const minute = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return at.getSeconds() === 0 ? minute : `${minute}:${two(at.getSeconds())}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

/** From the first time to the last; uPlot itself would show years around a single one. */
function shown(plot: uPlot): [number, number] {
  const times = plot.data[0];
  const most = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? most, most - SHORTEST), most];
}
