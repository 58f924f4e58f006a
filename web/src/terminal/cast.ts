// A recording (asciicast, version 2): what was printed, when, and every change of size.

export interface Moment {
  at: number;
  kind: "o" | "r" | "m";
  data: string;
}

export interface Size {
  columns: number;
  rows: number;
}

// No terminal is larger, and the page draws every cell.
const LARGEST = 1000;
const KINDS: readonly string[] = ["o", "r", "m"];

/** A recording as far as it was read: it is given its text in any pieces. */
export class Cast {
  size: Size = { columns: 80, rows: 24 };
  /** When it began, in milliseconds; null if it does not say so. */
  began: number | null = null;
  readonly moments: Moment[] = [];
  private rest = "";
  private known = false;

  get seconds(): number {
    return this.moments.at(-1)?.at ?? 0;
  }

  /** Read on. Throws where the text is no recording; a line that is half written waits for its end. */
  take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (this.known) this.moment(line);
      else this.header(line);
    }
  }

  /** How many moments there are up to a time. */
  upTo(seconds: number): number {
    let low = 0;
    let high = this.moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.moments[middle]?.at ?? 0) <= seconds) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private header(line: string): void {
    const { version, width, height, timestamp } = (JSON.parse(line) ?? {}) as Record<string, unknown>;
    if (version !== 2) throw new Error("Not a recording");
    this.size = { columns: bounded(width, 80), rows: bounded(height, 24) };
    this.began = typeof timestamp === "number" ? timestamp * 1000 : null;
    this.known = true;
  }

  private moment(line: string): void {
    try {
      const [at, kind, data] = JSON.parse(line) as [number, Moment["kind"], string];
      if (typeof at === "number" && typeof data === "string" && KINDS.includes(kind)) this.moments.push({ at, kind, data });
    } catch {
      // A machine that went down in the middle of a line.
    }
  }
}

/** The size that a moment changes to, if it changes it. */
export function sizeOf(moment: Moment): Size | null {
  const found = moment.kind === "r" ? /^(\d+)x(\d+)$/.exec(moment.data) : null;
  return found && { columns: bounded(Number(found[1]), 80), rows: bounded(Number(found[2]), 24) };
}

function bounded(size: unknown, usual: number): number {
  return typeof size === "number" && size >= 1 ? Math.min(Math.floor(size), LARGEST) : usual;
}
