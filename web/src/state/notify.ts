// Tells by the browser's own notifications that somebody waits for an answer or a session failed.

import type { Approval, SessionInfo } from "../protocol/shapes.ts";
import type { Live } from "./live.ts";
import { sessionHref } from "./route.ts";

export function canNotify(): NotificationPermission | "missing" {
  return "Notification" in window ? Notification.permission : "missing";
}

export async function askToNotify(): Promise<NotificationPermission> {
  return Notification.requestPermission();
}

/** Listen for as long as the page lives. What was there when the page came is no news. */
export function notifyOf(live: Live): void {
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
  let failed: Set<string> | null = null;
  live.sessions.subscribe(() => {
    const now = live.sessions.get().value?.filter((session) => session.status === "error");
    if (!now) return;
    for (const session of now) {
      if (failed && !failed.has(session.sessionId)) {
        show("A session failed", titleOf(session), session.sessionId, sessionHref(session.sessionId));
      }
    }
    failed = new Set(now.map((session) => session.sessionId));
  });
}

function nameOf(approval: Approval): string {
  return `${approval.sessionId}/${approval.agent}/${approval.since}`;
}

function titleOf(session: SessionInfo): string {
  return session.name ?? session.tmuxSession;
}

function show(title: string, body: string, tag: string, href: string): void {
  if (canNotify() !== "granted" || document.visibilityState === "visible") return;
  const notification = new Notification(title, { body: body.slice(0, 200), tag });
  notification.onclick = () => {
    window.focus();
    location.hash = href;
    notification.close();
  };
}
