// Takes the numbers of the machine and of all running sessions again and again, and keeps them for plots. It begins when
// numbers are first shown, and goes on, more rarely, while they are not: a user who comes back sees what was between.

import { told, type Api, type Problem } from "../protocol/api.ts";
import type { Stats } from "../protocol/shapes.ts";
import { Cell } from "./cell.ts";
import { added, numbersIn, parseMetrics, type Sample } from "./samples.ts";

const OFTEN = 3000;
const RARELY = 15_000;

export interface Numbers {
  host: readonly Sample[];
  /** By session. */
  sessions: ReadonlyMap<string, readonly Sample[]>;
  last: Stats | null;
  problem: Problem | null;
}

export class Sampler {
  readonly numbers = new Cell<Numbers>({ host: [], sessions: new Map(), last: null, problem: null });
  private watchers = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isTaking = false;

  constructor(
    private readonly api: Api,
    private readonly isSeen: () => boolean = () => true,
    private readonly often = OFTEN,
  ) {}

  /** Look at numbers, until the answered function is called. */
  watch(): () => void {
    this.watchers += 1;
    void this.take();
    return () => {
      this.watchers -= 1;
    };
  }

  private async take(): Promise<void> {
    clearTimeout(this.timer);
    if (this.isTaking) return;
    this.isTaking = true;
    if (this.watchers > 0 || this.isSeen()) {
      try {
        const [stats, metrics] = await Promise.all([this.api.get<Stats>("/stats"), this.api.text("/metrics")]);
        this.numbers.change((was) => grown(was, stats, parseMetrics(metrics), Date.now()));
      } catch (error) {
        this.numbers.change((was) => ({ ...was, problem: told(error) }));
      }
    }
    this.isTaking = false;
    this.timer = setTimeout(() => void this.take(), this.watchers > 0 && this.isSeen() ? this.often : RARELY);
  }
}

/** What is known after one more look; of sessions that do not run nothing is kept. */
export function grown(was: Numbers, stats: Stats, metrics: Record<string, number>, now: number): Numbers {
  const running = stats.sessions.filter((session) => session.status === "active");
  return {
    host: added(was.host, { ...metrics, ...numbersIn({ host: stats.host ?? {} }) }, now),
    sessions: new Map(running.map((one) => [one.sessionId, added(was.sessions.get(one.sessionId) ?? [], numbersIn(one), now)])),
    last: stats,
    problem: null,
  };
}
