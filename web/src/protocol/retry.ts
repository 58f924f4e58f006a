// How long to wait before trying again: longer each time, never exactly as long as everybody else.

const SHORTEST = 250;
const LONGEST = 5000;

export class Patience {
  private failures = 0;

  constructor(private readonly random: () => number = Math.random) {}

  /** Milliseconds until the next try. */
  next(): number {
    const most = Math.min(LONGEST, SHORTEST * 2 ** this.failures);
    this.failures = Math.min(this.failures + 1, 10);
    return most * (0.5 + this.random() / 2);
  }

  /** It worked: begin with the shortest again. */
  reset(): void {
    this.failures = 0;
  }
}
