// Numbers taken again and again, for plots.

export interface Sample {
  at: number;
  values: Record<string, number>;
}

export interface Line {
  label: string;
  values: (number | null)[];
}

export interface Lines {
  times: number[];
  lines: Line[];
}

const MOST = 720;
// Seconds without a sample after which a line is not drawn through.
const BREAK = 45;

export function added(samples: readonly Sample[], values: Record<string, number>, now: number): Sample[] {
  const at = Math.round(now / 1000);
  const last = samples.at(-1)?.at;
  const gap = last !== undefined && at - last > BREAK ? [{ at: last + 1, values: {} }] : [];
  return [...samples, ...gap, { at, values }].slice(-MOST);
}

/** The values of some names as lines with labels; a name without a value at a time leaves a gap. */
export function linesOf(samples: readonly Sample[], labels: Record<string, string>): Line[] {
  return Object.entries(labels).map(([name, label]) => ({ label, values: samples.map((sample) => sample.values[name] ?? null) }));
}

/** Every number in an answer, by name: `cpu`, `states.idle`. Servers may send more than this page knows. */
export function numbersIn(answer: Record<string, unknown>, prefix = ""): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [name, value] of Object.entries(answer)) {
    if (typeof value === "number") found[prefix + name] = value;
    else if (value && typeof value === "object" && !Array.isArray(value)) Object.assign(found, numbersIn(value as Record<string, unknown>, `${prefix}${name}.`));
  }
  return found;
}

/** Metrics as Prometheus writes them: the sum by name, and by name and one label. */
export function parseMetrics(text: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})? (\S+)/.exec(line);
    const value = Number(match?.[3]);
    if (!match || !match[1] || !Number.isFinite(value)) continue;
    found[match[1]] = (found[match[1]] ?? 0) + value;
    const label = /^\w+="([^"]*)"$/.exec(match[2] ?? "");
    if (label) found[`${match[1]}.${label[1]}`] = value;
  }
  return found;
}
