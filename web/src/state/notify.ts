// Shows the browser's own notifications when an agent waits for an answer or a session failed.

import type { Approval } from "../protocol/shapes.ts";
import type { Mas } from "./mas.ts";
import { sessionHref } from "./route.ts";

export function canNotify(): NotificationPermission | "missing" {
  return "Notification" in window ? Notification.permission : "missing";
}

export async function askToNotify(): Promise<NotificationPermission> {
  return Notification.requestPermission();
}

/** Listen for as long as the page lives. What was there when the page came is no news. */
export function notifyOf({ live, notices }: Pick<Mas, "live" | "notices">): void {
  let waiting: Set<string> | null = null;
  live.approvals.subscribe(() => {
    const now = live.approvals.get().value;
    if (!now) return;
    for (const approval of now) {
      if (waiting && !waiting.has(nameOf(approval))) {
        const who = `${approval.agent} ${approval.role} waits for an answer`;
        show(who, approval.text || approval.kind, nameOf(approval), "#/approvals");
      }
    }
    waiting = new Set(now.map(nameOf));
  });
  live.failures.subscribe(() => {
    const event = live.failures.get().at(-1);
    if (!event?.sessionId) return;
    const name = live.titleOf(event.sessionId);
    const text = event.text.replaceAll(event.sessionId, name);
    notices.warn(text);
    show(`${name} failed`, text, event.id, sessionHref(event.sessionId));
  });
}

function nameOf(approval: Approval): string {
  return `${approval.sessionId}/${approval.agent}/${approval.since}`;
}

function show(title: string, body: string, tag: string, href: string): void {
  if (canNotify() !== "granted" || document.visibilityState === "visible") return;
  let notification: Notification;
  try {
    notification = new Notification(title, { body: body.slice(0, 200), tag });
  } catch {
    // Phones let only pages do that which were installed; the page itself shows it.
    return;
  }
  notification.onclick = () => {
    window.focus();
    location.hash = href;
    notification.close();
  };
}
