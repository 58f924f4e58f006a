// Numbers and times as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

const STEPS: readonly [number, string][] = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
];

/** How long ago a moment was. */
export function ago(moment: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  for (const [length, unit] of STEPS) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return Number.isNaN(seconds) ? "" : seconds < 10 ? "now" : `${Math.floor(seconds / 10) * 10} s`;
}

/** A number with no more digits than say something. */
export function plain(value: number): string {
  return String(Math.round(value * 100) / 100);
}

export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

export function clock(moment: string): string {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

/** What people call a session. */
export function titleOf(session: { name: string | null; tmuxSession: string }): string {
  return session.name ?? session.tmuxSession;
}

/** What the kernel does not hold agents to, and what they do without: a line each. */
export function gapsOf({ notEnforced, notAvailable }: { notEnforced: readonly string[]; notAvailable: readonly string[] }): string {
  const lists = { "Not enforced": notEnforced, "Not available": notAvailable };
  return Object.entries(lists).flatMap(([title, lines]) => (lines.length ? [`${title}: ${lines.join("; ")}`] : [])).join("\n");
}
