// A plot over time.

import { useEffect, useRef, type ReactNode } from "react";
import uPlot from "uplot";

export interface Line {
  label: string;
  values: (number | null)[];
}

// Told apart by lightness as well as by colour.
const STROKES = ["#0d8a8a", "#d0651f", "#7d63c9", "#b8860b", "#7c8a96", "#c2418d", "#4b8b2f"];
const HEIGHT = 180;
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
    const ink = getComputedStyle(here).color;
    const grid = { stroke: "rgba(128,128,128,.2)", width: 1 };
    const axis = { stroke: ink, grid, ticks: grid };
    const made = new uPlot(
      {
        width: here.clientWidth || 300,
        height: HEIGHT,
        series: [{}, ...lines.map((line, number) => ({ label: line.label, stroke: STROKES[number % STROKES.length] as string, width: 2, spanGaps: false }))],
        axes: [axis, { ...axis, size: 70, values: (_, ticks) => ticks.map(format) }],
        scales: { x: { range: (_, least, most) => [Math.min(least, most - SHORTEST), most] }, y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(1, (most ?? 1) * 1.1)] } },
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
      <figcaption>{title}</figcaption>
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
