// Follows `/events` for as long as the page lives: goes on where it left off, whatever happens to server or laptop.

import { Problem, type Api, type Out } from "./api.ts";
import { Patience } from "./retry.ts";
import { Blocks } from "./sse.ts";
import type { MasEvent } from "./shapes.ts";

// The server says something at least every 15 seconds.
const SILENCE = 40_000;

export type Link = "connecting" | "live" | "reconnecting" | Out;

export interface Hearing {
  event(event: MasEvent): void;
  /** It is connected; `fresh` says that something may have been missed: load everything again. */
  connected(fresh: boolean): void;
  link(link: Link): void;
  /** Something came, be it only a sign of life. */
  alive?(): void;
}

export class Feed {
  private last: string | null = null;
  private attempt: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly patience = new Patience();
  private closed = false;

  constructor(
    private readonly api: Api,
    private readonly hearing: Hearing,
    private readonly silence = SILENCE,
  ) {}

  /** How far it is: the id to go on from. */
  get place(): string | null {
    return this.last;
  }

  /** Follow from now on, or go on after an event that is known. */
  start(after: string | null = null): void {
    this.last = after;
    this.hearing.link("connecting");
    void this.run();
  }

  /** Try again now: the machine woke up, or the network is back. */
  retry(): void {
    if (this.closed) return;
    clearTimeout(this.timer);
    this.attempt?.abort();
    this.patience.reset();
    void this.run();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.attempt?.abort();
  }

  private async run(): Promise<void> {
    const attempt = new AbortController();
    this.attempt = attempt;
    let watchdog = setTimeout(() => attempt.abort(), this.silence);
    try {
      const after = this.last === null ? "" : `?after=${encodeURIComponent(this.last)}`;
      const answer = await this.api.stream(`/events${after}`, attempt.signal);
      if (!answer.body) throw new Problem(0, "unreachable", "No events came");
      const reader = answer.body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
      const blocks = new Blocks();
      const first = this.last === null;
      let known = false;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => attempt.abort(), this.silence);
        if (!known) {
          known = true;
          this.patience.reset();
          this.hearing.link("live");
          this.hearing.connected(first);
        }
        for (const block of blocks.take(value)) this.hear(block.id, block.event, block.data);
        this.hearing.alive?.();
      }
    } catch (error) {
      if (error instanceof Problem && error.out) {
        clearTimeout(watchdog);
        if (this.attempt === attempt) this.hearing.link(error.out);
        return;
      }
    }
    clearTimeout(watchdog);
    if (this.closed || this.attempt !== attempt) return;
    this.hearing.link("reconnecting");
    this.timer = setTimeout(() => void this.run(), this.patience.next());
  }

  private hear(id: string | null, name: string, data: string | null): void {
    if (id) this.last = id;
    if (data === null) return;
    if (name === "gap") {
      this.hearing.connected(true);
      return;
    }
    try {
      this.hearing.event({ ...(JSON.parse(data) as MasEvent) });
    } catch {
      // Half a line of a server that died: it is sent again.
    }
  }
}
