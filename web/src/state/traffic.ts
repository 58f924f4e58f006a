// How many messages came and went, by the minute.

import type { MasEvent, Message } from "../protocol/shapes.ts";
import type { Lines } from "./samples.ts";

const MINUTE = 60_000;
const MOST = 60;
const KINDS = ["sent", "acknowledged", "undelivered"] as const;
type Kind = (typeof KINDS)[number];

/** Counts of the last hour. */
export class Traffic {
  private readonly minutes = new Map<number, Record<Kind, number>>();

  add(kind: string, at: string): void {
    const minute = Math.floor(Date.parse(at) / MINUTE);
    if (Number.isNaN(minute) || !isKind(kind)) return;
    const counts = this.minutes.get(minute) ?? { sent: 0, acknowledged: 0, undelivered: 0 };
    counts[kind] += 1;
    this.minutes.set(minute, counts);
  }

  /** An event of a message: one when it was sent, and one for each step with each agent. */
  hear(event: MasEvent): void {
    if (event.event === "message") this.add(event.state === "queued" ? "sent" : event.state, event.at);
  }

  lines(now: number): Lines {
    const last = Math.floor(now / MINUTE);
    for (const minute of [...this.minutes.keys()]) if (minute <= last - MOST) this.minutes.delete(minute);
    const minutes = Array.from({ length: MOST }, (_, number) => last - MOST + 1 + number);
    return {
      times: minutes.map((minute) => minute * 60),
      lines: KINDS.map((kind) => ({ label: kind, values: minutes.map((minute) => this.minutes.get(minute)?.[kind] ?? 0) })),
    };
  }
}

/** The same of messages that are known with all their deliveries. */
export function trafficOf(messages: readonly Message[]): Traffic {
  const traffic = new Traffic();
  for (const message of messages) {
    traffic.add("sent", message.createdAt);
    for (const delivery of message.deliveries) traffic.add(delivery.state, delivery.at);
  }
  return traffic;
}

function isKind(kind: string): kind is Kind {
  return (KINDS as readonly string[]).includes(kind);
}
