// A recording (asciicast, version 2): what was printed, when, and every change of size.

export interface Moment {
  at: number;
  kind: "o" | "r" | "m";
  data: string;
}

export interface Cast {
  columns: number;
  rows: number;
  moments: Moment[];
  seconds: number;
}

// No terminal is larger, and the page draws every cell.
const LARGEST = 1000;
const KINDS: readonly string[] = ["o", "r", "m"];

/** The recording a text holds; an error if it is none. A last line that is half written does not count. */
export function parseCast(text: string): Cast {
  const [head = "", ...lines] = text.split("\n");
  const header = JSON.parse(head) as { width?: unknown; height?: unknown } | null;
  const moments: Moment[] = [];
  for (const line of lines) {
    try {
      const [at, kind, data] = JSON.parse(line) as [number, Moment["kind"], string];
      if (typeof at === "number" && typeof data === "string" && KINDS.includes(kind)) moments.push({ at, kind, data });
    } catch {
      // An end in the middle of a line, or none at all.
    }
  }
  return { columns: bounded(header?.width, 80), rows: bounded(header?.height, 24), moments, seconds: moments.at(-1)?.at ?? 0 };
}

function bounded(size: unknown, usual: number): number {
  return typeof size === "number" && size >= 1 ? Math.min(Math.floor(size), LARGEST) : usual;
}

/** How many moments there are up to a time. */
export function upTo(cast: Cast, seconds: number): number {
  let low = 0;
  let high = cast.moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cast.moments[middle]?.at ?? 0) <= seconds) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The size of the terminal after the first `count` moments. */
export function sizeAt(cast: Cast, count: number): { columns: number; rows: number } {
  for (let number = count - 1; number >= 0; number -= 1) {
    const moment = cast.moments[number];
    const size = moment?.kind === "r" ? /^(\d+)x(\d+)$/.exec(moment.data) : null;
    if (size) return { columns: bounded(Number(size[1]), 80), rows: bounded(Number(size[2]), 24) };
  }
  return { columns: cast.columns, rows: cast.rows };
}
