// One stream of events for all tabs of a browser.
//
// A browser opens six connections to a server and no more, and a stream keeps one for itself. So the tabs share a lock:
// the tab that has it leads, reads the stream, and passes events on. When that tab closes, the next in the queue goes on
// from the event it received last. Every event names the one before it, so that a tab that missed one notices. A leader
// that has fallen silent, as tabs in the background of a phone do, loses the lock to a tab that is visible.

import type { Api, Out } from "./api.ts";
import { Feed, type Hearing, type Link } from "./feed.ts";
import type { MasEvent } from "./shapes.ts";

export type Word =
  /** A tab came, or woke up: how are things? */
  | { say: "ask" }
  | { say: "here"; link: Link; last: string | null }
  | { say: "event"; event: MasEvent; before: string | null }
  /** It was begun, or something was missed for good. */
  | { say: "anew"; last: string | null }
  /** This browser is signed out, or the server is not its own. */
  | { say: "out"; why: Out };

/** Tells all other tabs. */
export interface Channel {
  post(word: Word): void;
  hear(listener: (word: Word) => void): void;
}

/** As the browser's own, for one lock: `held` is called with it, and has it until what it answers ends. */
export interface Lock {
  /** With `steal` it is taken from the tab that has it, whose call fails. */
  request(steal: boolean, held: () => Promise<void>): Promise<void>;
}

export interface Patient {
  /** A leader that sends nothing for this long is taken for closed; the server sends something every 15 seconds. */
  silence: number;
  /** How long a leader may take to answer. */
  answer: number;
}

const USUAL: Patient = { silence: 40_000, answer: 3000 };
const SIGN_EVERY = 5000;
const STALE = 20_000;
const MOST_KNOWN = 500;

export class SharedFeed {
  private feed: Feed | null = null;
  private stepDown: (() => void) | null = null;
  private link: Link = "connecting";
  private last: string | null = null;
  private readonly known = new Set<string>();
  private isLoaded = false;
  private isQueued = false;
  private isClosed = false;
  private isOut = false;
  private signedAt = 0;
  private heardAt = 0;
  private doubt: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly api: Api,
    private readonly hearing: Hearing,
    private readonly lock: Lock,
    private readonly channel: Channel,
    private readonly isSeen: () => boolean = () => true,
    private readonly patient: Patient = USUAL,
  ) {}

  /** Whether this tab reads the stream. */
  get leads(): boolean {
    return this.feed !== null;
  }

  start(): void {
    this.channel.hear((word) => this.told(word));
    this.hearing.link(this.link);
    this.channel.post({ say: "ask" });
    this.wait(this.patient.silence);
    this.queue();
  }

  /** Try again now: the machine woke up, the network is back, or the page is visible. */
  retry(): void {
    if (this.isOut) return;
    if (this.feed) {
      this.feed.retry();
      return;
    }
    this.channel.post({ say: "ask" });
    this.wait(this.patient.answer);
  }

  /** The server does not know this browser (any more), or this browser not the server: all its tabs have the same keys. */
  signOut(why: Out = "signed-out"): void {
    if (this.isOut) return;
    this.channel.post({ say: "out", why });
    this.goOut(why);
  }

  /** Begin again: somebody says that this browser is signed in, or the server its own. */
  again(): void {
    if (!this.isOut) return;
    this.isOut = false;
    this.link = "connecting";
    this.hearing.link(this.link);
    this.wait(this.patient.silence);
    this.queue();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.doubt);
    this.end();
  }

  private queue(): void {
    if (this.isQueued || this.isClosed || this.isOut) return;
    this.isQueued = true;
    void this.hold(false).finally(() => {
      this.isQueued = false;
    });
  }

  private async hold(steal: boolean): Promise<void> {
    try {
      await this.lock.request(steal, () => this.lead());
    } catch {
      // Taken by a tab that thought this one gone: it leads now.
      this.end();
      this.channel.post({ say: "ask" });
      this.wait(this.patient.silence);
      setTimeout(() => this.queue());
    }
  }

  private lead(): Promise<void> {
    if (this.isClosed || this.isOut || this.feed) return Promise.resolve();
    clearTimeout(this.doubt);
    return new Promise((done) => {
      this.stepDown = done;
      this.feed = new Feed(this.api, {
        event: (event) => this.pass(event),
        connected: (fresh) => this.connected(fresh),
        link: (link) => this.turned(link),
        alive: () => this.sign(),
      });
      this.feed.start(this.last);
    });
  }

  /** Lead no more. */
  private end(): void {
    this.feed?.close();
    this.feed = null;
    this.stepDown?.();
  }

  private goOut(why: Out): void {
    this.isOut = true;
    this.isLoaded = false;
    this.last = null;
    clearTimeout(this.doubt);
    this.end();
    this.hearing.link(why);
  }

  private pass(event: MasEvent): void {
    // What was on its way to this tab when it took over comes from the stream, too.
    if (this.known.has(event.id)) return;
    this.channel.post({ say: "event", event, before: this.last });
    this.take(event);
  }

  private connected(fresh: boolean): void {
    if (fresh) this.channel.post({ say: "anew", last: this.feed?.place ?? null });
    if (fresh || !this.isLoaded) this.load();
  }

  private turned(link: Link): void {
    if (link === "signed-out" || link === "stranger") {
      this.signOut(link);
      return;
    }
    this.link = link;
    this.hearing.link(link);
    this.here();
  }

  /** Something came: let the others know now and then, and where to go on from as soon as that is known. */
  private sign(): void {
    const begins = this.last === null;
    this.last = this.feed?.place ?? this.last;
    this.heardAt = Date.now();
    if (begins || this.heardAt - this.signedAt > SIGN_EVERY) this.here();
  }

  private here(): void {
    this.signedAt = Date.now();
    this.channel.post({ say: "here", link: this.link, last: this.last });
  }

  private told(word: Word): void {
    if (this.isClosed) return;
    if (word.say === "out") {
      if (!this.isOut) this.goOut(word.why);
    } else if (word.say === "ask") {
      if (this.feed) this.answer(this.feed);
    } else if (!this.feed && (!this.isOut || word.say === "anew")) {
      // If all were signed out, a leader that begins has signed in. A leader notices another one when it loses its lock.
      this.isOut = false;
      this.wait(this.patient.silence);
      this.queue();
      this.follow(word);
    }
  }

  private answer(feed: Feed): void {
    const isSilent = this.link === "live" && Date.now() - this.heardAt > STALE;
    if (this.link === "reconnecting" || isSilent) feed.retry();
    this.here();
  }

  private follow(word: Exclude<Word, { say: "ask" | "out" }>): void {
    const place = word.say === "event" ? word.before : word.last;
    // If the place is unknown here, this tab has missed the events before it.
    if (word.say === "anew" || (this.last !== null && place !== this.last && !this.known.has(place ?? ""))) this.isLoaded = false;
    if (word.say !== "event" && (!this.isLoaded || this.last === null)) this.last = word.last;
    if (word.say === "here") this.link = word.link;
    this.hearing.link(this.link);
    // A leader that does not know its own place yet says so soon.
    if (this.link === "live" && !this.isLoaded && (place !== null || word.say === "anew")) this.load();
    if (word.say === "event") this.take(word.event);
  }

  private take(event: MasEvent): void {
    if (this.known.has(event.id)) return;
    this.last = event.id;
    this.known.add(event.id);
    if (this.known.size > MOST_KNOWN) this.known.delete(this.known.values().next().value ?? "");
    this.hearing.event(event);
  }

  private load(): void {
    this.isLoaded = true;
    this.hearing.connected(true);
  }

  /** Take over if the leader sends nothing for `time`, and this tab is visible. */
  private wait(time: number): void {
    clearTimeout(this.doubt);
    if (this.isClosed || this.isOut) return;
    this.doubt = setTimeout(() => {
      if (this.feed) return;
      if (this.isSeen()) void this.hold(true);
      else this.wait(this.patient.silence);
    }, time);
  }
}
