// One message and how far it came with each agent.

import type { ReactNode } from "react";
import type { DeliveryState, Message } from "../protocol/shapes.ts";
import { clock } from "../state/words.ts";

const SIGNS: Record<DeliveryState, string> = { queued: "◌", typed: "◐", acknowledged: "✓", undelivered: "✕" };
// So many are named.
const FEW = 4;
const STATES: readonly DeliveryState[] = ["undelivered", "queued", "typed", "acknowledged"];

export function MessageItem({ message }: { message: Message }): ReactNode {
  return (
    <li className={message.from === null ? "message mine" : "message"} data-message={message.id}>
      <header>
        <b>{message.from ?? "you"}</b> → <b>{message.target}</b>
        <time dateTime={message.createdAt} title={message.createdAt}>{clock(message.createdAt)}</time>
      </header>
      <p className="words">{message.message}</p>
      <footer>
        {STATES.map((state) => {
          const those = message.deliveries.filter((delivery) => delivery.state === state);
          if (those.length === 0) return null;
          const reasons = [...new Set(those.map((delivery) => delivery.reason).filter(Boolean))].join("; ");
          const who = those.map((delivery) => delivery.agent).join(" ");
          return (
            <span key={state} className={`delivery is-${state}`} title={`${state}: ${who}${reasons && ` (${reasons})`}`}>
              <span aria-hidden="true">{SIGNS[state]}</span> {state} {message.deliveries.length > 1 ? those.length : ""}
              {message.deliveries.length > 1 && state !== "acknowledged" && those.length <= FEW && <span className="quiet"> ({who})</span>}
              {state === "undelivered" && reasons && <span className="quiet"> {reasons.slice(0, 120)}</span>}
            </span>
          );
        })}
      </footer>
    </li>
  );
}
