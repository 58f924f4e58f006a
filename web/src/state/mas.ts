// Everything the page works with, made once in main.tsx and handed down.

import { createContext, useContext } from "react";
import { Api, path } from "../protocol/api.ts";
import { Mux, type Wire } from "../protocol/mux.ts";
import { SharedFeed } from "../protocol/shared.ts";
import { Live } from "./live.ts";
import { Notices } from "./notices.ts";
import { Sampler } from "./sampler.ts";
import { channelOfTabs, lockOfTabs } from "./tabs.ts";

// A clock that jumps this far between two ticks means that the machine slept.
const TICK = 5000;
const SLEPT = 20_000;

export class Mas {
  readonly api: Api;
  readonly live: Live;
  readonly feed: SharedFeed;
  readonly mux: Mux;
  readonly sampler: Sampler;
  readonly notices = new Notices();

  constructor() {
    this.api = new Api(
      (where, init) => fetch(where, init),
      () => this.feed.signOut(),
    );
    this.live = new Live(this.api);
    this.sampler = new Sampler(this.api, () => !document.hidden);
    this.feed = new SharedFeed(this.api, this.live, lockOfTabs(), channelOfTabs(), () => !document.hidden);
    this.mux = new Mux(() => new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/terminals`) as Wire);
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
    this.feed.retry();
    this.mux.retry();
  }

  /** Where the whole of a file can be had. */
  downloadHref(session: string, file: string): string {
    return `${path`/sessions/${session}/download`}?path=${encodeURIComponent(file)}`;
  }
}

export const MasContext = createContext<Mas | null>(null);

export function useMas(): Mas {
  const mas = useContext(MasContext);
  if (!mas) throw new Error("There is no MAS here");
  return mas;
}
