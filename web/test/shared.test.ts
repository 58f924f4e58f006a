import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Api } from "../src/protocol/api.ts";
import type { Link } from "../src/protocol/feed.ts";
import { SharedFeed, type Channel, type Lock, type Patient, type Word } from "../src/protocol/shared.ts";
import type { MasEvent } from "../src/protocol/shapes.ts";
import { until } from "./until.ts";

/** A server with a history: a listener with an id gets what came after it. */
class Server {
  readonly asked: string[] = [];
  status = 200;
  private readonly history: string[] = ["1.0"];
  private readonly open = new Set<ReadableStreamDefaultController<Uint8Array>>();

  fetch = (where: string, init: RequestInit = {}): Promise<Response> => {
    this.asked.push(where);
    if (this.status === 0) return Promise.reject(new TypeError("refused"));
    if (this.status !== 200) return Promise.resolve(new Response("{}", { status: this.status }));
    const after = new URLSearchParams(where.split("?")[1]).get("after");
    const missed = after === null ? [] : this.history.slice(this.history.indexOf(after) + 1);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(bytes(`retry: 1\n\nid: ${after ?? this.history.at(-1)}\n\n${missed.map(block).join("")}`));
        this.open.add(controller);
        init.signal?.addEventListener("abort", () => {
          this.open.delete(controller);
          controller.error(new Error("aborted"));
        });
      },
    });
    return Promise.resolve(new Response(body));
  };

  tell(id: string): void {
    this.history.push(id);
    for (const controller of this.open) controller.enqueue(bytes(block(id)));
  }

  /** End every stream, as a server that is stopped does. */
  cut(status: number): void {
    this.status = status;
    for (const controller of this.open) controller.close();
    this.open.clear();
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const block = (id: string): string => `id: ${id}\nevent: agent\ndata: {"id":"${id}","event":"agent"}\n\n`;

/** What the tabs of a browser share. */
class Browser implements Lock {
  readonly tabs = new Set<Tab>();
  private holder: { lost: (error: Error) => void } | null = null;
  private readonly waiting: (() => void)[] = [];

  async request(steal: boolean, held: () => Promise<void>): Promise<void> {
    if (steal) this.holder?.lost(new Error("stolen"));
    else if (this.holder) await new Promise<void>((turn) => this.waiting.push(turn));
    let mine: { lost: (error: Error) => void } | null = null;
    const stolen = new Promise<void>((_, lost) => (mine = { lost }));
    this.holder = mine;
    try {
      await Promise.race([held(), stolen]);
    } finally {
      if (this.holder === mine) {
        this.holder = null;
        this.waiting.shift()?.();
      }
    }
  }

  /** A tab is gone: its lock too. */
  gone(tab: Tab): void {
    this.tabs.delete(tab);
    tab.feed.close();
  }
}

class Tab implements Channel {
  readonly events: string[] = [];
  readonly feed: SharedFeed;
  link: Link | null = null;
  loads = 0;
  isSeen = true;
  isFrozen = false;
  private listener: (word: Word) => void = () => undefined;

  constructor(private readonly browser: Browser, server: Server, patient?: Patient) {
    browser.tabs.add(this);
    const hearing = {
      event: (event: MasEvent) => void this.events.push(event.id),
      connected: () => void (this.loads += 1),
      link: (link: Link) => void (this.link = link),
    };
    this.feed = new SharedFeed(new Api(server.fetch), hearing, browser, this, () => this.isSeen, patient);
    this.feed.start();
  }

  post(word: Word): void {
    if (this.isFrozen) return;
    for (const tab of this.browser.tabs) if (tab !== this) queueMicrotask(() => tab.isFrozen || tab.listener(structuredClone(word)));
  }

  hear(listener: (word: Word) => void): void {
    this.listener = listener;
  }
}

function opened(t: TestContext, count: number, patient?: Patient): { server: Server; browser: Browser; tabs: Tab[] } {
  const server = new Server();
  const browser = new Browser();
  const tabs = Array.from({ length: count }, () => new Tab(browser, server, patient));
  t.after(() => [...browser.tabs].forEach((tab) => browser.gone(tab)));
  return { server, browser, tabs };
}

const all = (tabs: readonly Tab[], fact: (tab: Tab) => boolean): Promise<void> => until(() => tabs.every(fact));
const settled = (): Promise<void> => new Promise((done) => setTimeout(done, 30));

test("seven tabs read one stream, and each gets all of it and loads once", async (t) => {
  const { server, tabs } = opened(t, 7);
  await all(tabs, (tab) => tab.link === "live" && tab.loads === 1);
  server.tell("1.1");
  server.tell("1.2");
  await all(tabs, (tab) => tab.events.join() === "1.1,1.2");
  assert.deepEqual(server.asked, ["/events"]);
  assert.deepEqual(tabs.map((tab) => tab.loads), [1, 1, 1, 1, 1, 1, 1]);
  assert.deepEqual(tabs.map((tab) => tab.feed.leads), [true, false, false, false, false, false, false]);
});

test("when the leader goes the next goes on where it was: nothing is lost, nothing sent twice", async (t) => {
  const { server, browser, tabs } = opened(t, 3);
  const [first, ...rest] = tabs;
  await all(tabs, (tab) => tab.link === "live");
  server.tell("1.1");
  await all(tabs, (tab) => tab.events.length === 1);
  if (first) browser.gone(first);
  // Nobody listens at this moment.
  server.tell("1.2");
  await all(rest, (tab) => tab.events.length === 2);
  server.tell("1.3");
  await all(rest, (tab) => tab.events.join() === "1.1,1.2,1.3" && tab.link === "live");
  assert.deepEqual(server.asked, ["/events", "/events?after=1.1"]);
  assert.deepEqual(rest.map((tab) => tab.loads), [1, 1]);
});

test("a tab that missed an event loads everything again", async (t) => {
  const { server, tabs } = opened(t, 3);
  const deaf = tabs[2] as Tab;
  await all(tabs, (tab) => tab.link === "live");
  deaf.isFrozen = true;
  server.tell("1.1");
  await until(() => tabs[1]?.events.length === 1);
  await settled();
  deaf.isFrozen = false;
  server.tell("1.2");
  await until(() => deaf.events.join() === "1.2");
  assert.deepEqual(tabs.map((tab) => tab.loads), [1, 1, 2]);
});

test("a tab that comes while the server is away loads when it is back", async (t) => {
  const { server, browser, tabs } = opened(t, 1);
  await all(tabs, (tab) => tab.link === "live");
  server.cut(0);
  await all(tabs, (tab) => tab.link === "reconnecting");
  const late = new Tab(browser, server);
  await until(() => late.link === "reconnecting");
  assert.equal(late.loads, 0);
  server.status = 200;
  // Whoever asks has it tried at once.
  late.feed.retry();
  await until(() => late.link === "live" && late.loads === 1);
});

test("a leader that has fallen silent is replaced by a tab that is seen, and follows when it wakes", async (t) => {
  const { server, tabs } = opened(t, 3, { silence: 60, answer: 20 });
  const [asleep, hidden, seen] = tabs as [Tab, Tab, Tab];
  hidden.isSeen = false;
  await all(tabs, (tab) => tab.link === "live");
  asleep.isFrozen = true;
  await until(() => seen.feed.leads);
  assert.equal(hidden.feed.leads, false);
  asleep.isFrozen = false;
  server.tell("1.1");
  await all(tabs, (tab) => tab.events.join() === "1.1");
  assert.deepEqual(tabs.map((tab) => tab.feed.leads), [false, false, true]);
});

test("signed out in one tab is signed out in all, and signing in brings all back", async (t) => {
  const { server, browser, tabs } = opened(t, 3);
  await all(tabs, (tab) => tab.link === "live");
  server.cut(401);
  await all(tabs, (tab) => tab.link === "signed-out");
  const asked = server.asked.length;
  await settled();
  assert.equal(server.asked.length, asked);
  server.status = 200;
  const again = new Tab(browser, server);
  await all([...tabs, again], (tab) => tab.link === "live");
  server.tell("1.1");
  await all([...tabs, again], (tab) => tab.events.join() === "1.1");
  assert.deepEqual(tabs.map((tab) => tab.loads), [2, 2, 2]);
});

test("a tab that the server refuses signs the leader out, whose stream would go on", async (t) => {
  const { server, tabs } = opened(t, 2);
  await all(tabs, (tab) => tab.link === "live");
  tabs[1]?.feed.signOut();
  await all(tabs, (tab) => tab.link === "signed-out" && !tab.feed.leads);
  server.tell("1.1");
  await settled();
  assert.deepEqual(tabs.map((tab) => tab.events.length), [0, 0]);
});
