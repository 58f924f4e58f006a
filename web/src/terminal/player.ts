// Shows any moment of a recording in a terminal. A moment is wanted as often as one likes: only the last counts.

import { sizeOf, type Cast, type Moment, type Size } from "./cast.ts";

// So much is drawn before one looks whether another moment is wanted by now.
const AT_ONCE = 256 << 10;

/** The part of a terminal that is used. */
export interface Stage {
  reset(): void;
  resize(columns: number, rows: number): void;
  write(text: string, done: () => void): void;
}

export class Player {
  private shown = 0;
  private wanted = 0;
  private size: Size | null = null;
  private busy = false;
  private left = false;

  constructor(
    private readonly cast: Cast,
    private readonly stage: Stage,
  ) {}

  /** When the next thing happens after what is wanted; null if nothing does. */
  get next(): number | null {
    return this.cast.moments[this.wanted]?.at ?? null;
  }

  seek(seconds: number): void {
    this.wanted = this.cast.upTo(seconds);
    if (!this.busy) void this.draw();
  }

  /** Draw nothing more. */
  leave(): void {
    this.left = true;
  }

  private async draw(): Promise<void> {
    this.busy = true;
    while (!this.left && (this.shown !== this.wanted || !this.size)) {
      if (this.wanted < this.shown || !this.size) {
        this.stage.reset();
        this.resize(this.cast.size);
        this.shown = 0;
      }
      await this.write(this.piece());
    }
    this.busy = false;
  }

  /** The next moments that can be drawn together, and no more of them than a little. */
  private piece(): string {
    const printed: string[] = [];
    let length = 0;
    while (this.shown < this.wanted && length < AT_ONCE) {
      const moment = this.cast.moments[this.shown] as Moment;
      const size = sizeOf(moment);
      if (size && length > 0) break;
      if (size) this.resize(size);
      else if (moment.kind === "o") printed.push(moment.data);
      length += moment.data.length;
      this.shown += 1;
    }
    return printed.join("");
  }

  private resize(size: Size): void {
    if (size.columns !== this.size?.columns || size.rows !== this.size.rows) this.stage.resize(size.columns, size.rows);
    this.size = size;
  }

  private write(text: string): Promise<void> {
    return new Promise((done) => this.stage.write(text, done));
  }
}
