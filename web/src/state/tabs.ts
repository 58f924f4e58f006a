// What the tabs of a browser share: a lock and a channel. Where there is none, each tab is on its own.

import type { Channel, Lock, Word } from "../protocol/shared.ts";

// Tabs of another version of the page may speak otherwise.
const NAME = "mas-events-2";

export function lockOfTabs(): Lock {
  // Browsers have locks for pages of this machine, and for those that came encrypted.
  const locks = "locks" in navigator && "BroadcastChannel" in window ? navigator.locks : null;
  if (!locks) return { request: (_, held) => held() };
  return { request: (steal, held) => locks.request(NAME, { steal }, held) };
}

export function channelOfTabs(): Channel {
  const channel = "locks" in navigator && "BroadcastChannel" in window ? new BroadcastChannel(NAME) : null;
  return {
    post: (word) => channel?.postMessage(word),
    hear: (listener) => channel?.addEventListener("message", (event: MessageEvent<Word>) => listener(event.data)),
  };
}
