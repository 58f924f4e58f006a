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

/** The recording a text holds. A last line that is half written does not count. */
export function parseCast(text: string): Cast {
  const [head = "", ...lines] = text.split("\n");
  const header = JSON.parse(head) as { width?: number; height?: number };
  const moments: Moment[] = [];
  for (const line of lines) {
    try {
      const [at, kind, data] = JSON.parse(line) as [number, Moment["kind"], string];
      if (typeof at === "number" && typeof data === "string") moments.push({ at, kind, data });
    } catch {
      // An end in the middle of a line, or none at all.
    }
  }
  return { columns: header.width ?? 80, rows: header.height ?? 24, moments, seconds: moments.at(-1)?.at ?? 0 };
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
    if (size) return { columns: Number(size[1]), rows: Number(size[2]) };
  }
  return { columns: cast.columns, rows: cast.rows };
}
