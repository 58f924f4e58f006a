// Everything the page works with, made once in main.tsx and handed down.

import { createContext, useContext } from "react";
import { Api, path } from "../protocol/api.ts";
import { Door } from "../protocol/door.ts";
import type { Hearing } from "../protocol/feed.ts";
import { Mux, type Wire } from "../protocol/mux.ts";
import { SharedFeed } from "../protocol/shared.ts";
import { BrowserKeys } from "./keys.ts";
import { Live } from "./live.ts";
import { Notices } from "./notices.ts";
import { Sampler } from "./sampler.ts";
import { channelOfTabs, lockOfTabs } from "./tabs.ts";

// A clock that jumps this far between two ticks means that the machine slept.
const TICK = 5000;
const SLEPT = 20_000;

const TERMINALS = "/terminals";

export class Mas {
  readonly door: Door;
  readonly api: Api;
  readonly live: Live;
  readonly feed: SharedFeed;
  readonly mux: Mux;
  readonly sampler: Sampler;
  readonly notices = new Notices();

  constructor() {
    this.door = new Door((where, init) => fetch(where, init), new BrowserKeys(), location.host, takeCode());
    this.api = new Api(this.door.fetch, (why) => this.feed.signOut(why));
    this.live = new Live(this.api);
    this.sampler = new Sampler(this.api, () => !document.hidden);
    const { live, door } = this;
    const hearing: Hearing = {
      event: (event) => live.event(event),
      connected: (fresh) => live.connected(fresh),
      link: (link) => {
        door.heard(link);
        live.link(link);
      },
    };
    this.feed = new SharedFeed(this.api, hearing, lockOfTabs(), channelOfTabs(), () => !document.hidden);
    this.mux = new Mux(() => this.dial());
  }

  private async dial(): Promise<Wire> {
    const ticket = await this.door.ticket(TERMINALS);
    const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}${TERMINALS}`, ["mas", `ticket.${ticket}`]);
    socket.addEventListener("close", () => this.door.doubt());
    return socket as Wire;
  }

  start(): void {
    this.feed.start();
    let last = Date.now();
    setInterval(() => {
      const now = Date.now();
      if (now - last > SLEPT) this.wake();
      last = now;
    }, TICK);
    addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return;
      if (this.live.connection.get() === "reconnecting") this.wake();
      else if (!this.feed.leads) this.feed.retry();
    });
  }

  /** Try everything again at once. */
  wake(): void {
    this.door.doubt();
    this.feed.retry();
    this.mux.retry();
  }

  /** Begin again, after this browser was signed out or the server was not its own. */
  again(): void {
    this.door.again();
    this.feed.again();
    this.mux.retry();
  }

  async signOut(): Promise<void> {
    try {
      await this.door.signOut();
      this.feed.signOut();
    } catch (error) {
      this.notices.fail("Sign out", error);
    }
  }

  /** Save the whole of a file. */
  async download(session: string, file: string): Promise<void> {
    await this.open(`${path`/sessions/${session}/download`}?path=${encodeURIComponent(file)}`, { download: "" });
  }

  /** Have the browser itself open something of the server's. */
  async open(target: string, how: { download?: string; target?: string } = {}): Promise<void> {
    try {
      const ticket = await this.door.ticket(target);
      const href = `${target}${target.includes("?") ? "&" : "?"}ticket=${ticket}`;
      Object.assign(document.createElement("a"), { href, rel: "noopener", ...how }).click();
    } catch (error) {
      this.notices.fail("Open", error);
    }
  }
}

/** The code of a sign-in link, which stays neither in the address nor in the history. */
function takeCode(): string | null {
  if (location.pathname !== "/login") return null;
  const code = /[#?&]code=([0-9a-f]+)/.exec(location.search + location.hash)?.[1] ?? null;
  history.replaceState(null, "", "/");
  return code;
}

export const MasContext = createContext<Mas | null>(null);

export function useMas(): Mas {
  const mas = useContext(MasContext);
  if (!mas) throw new Error("There is no MAS here");
  return mas;
}
