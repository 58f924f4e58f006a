// Numbers taken again and again, for plots.

export interface Sample {
  at: number;
  values: Record<string, number>;
}

const MOST = 720;

export function added(samples: readonly Sample[], values: Record<string, number>, now: number): Sample[] {
  return [...samples.slice(-MOST + 1), { at: Math.round(now / 1000), values }];
}

/** The values of some names as lines; a name that was not told at a time leaves a gap. */
export function linesOf(samples: readonly Sample[], names: readonly string[]): { label: string; values: (number | null)[] }[] {
  return names.map((name) => ({ label: name, values: samples.map((sample) => sample.values[name] ?? null) }));
}

/** Every number in an answer, by name: `cpu`, `states.idle`. Servers may tell more than this page knows of. */
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
