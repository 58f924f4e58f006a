// Small parts that every page uses.

import { useLayoutEffect, useRef, type ReactNode } from "react";
import type { Problem } from "../protocol/api.ts";
import type { AgentState, SessionInfo, Status } from "../protocol/shapes.ts";
import { ago } from "../state/words.ts";

// A sign beside the colour, for people who see no colours.
const SIGNS: Record<AgentState | Status | "lost", string> = {
  starting: "◌",
  idle: "●",
  working: "◐",
  blocked: "▲",
  error: "✕",
  exited: "■",
  unknown: "?",
  active: "●",
  stopped: "■",
  lost: "▲",
  archived: "▣",
  deleted: "✕",
};

export function Badge({ state, source, text, small = false }: { state: AgentState | Status | "lost"; source?: string; text?: string; small?: boolean }): ReactNode {
  const title = [small && state, text, source && `reported by ${source}`].filter(Boolean).join(" · ");
  return (
    <span className={`badge is-${state}`} title={title || undefined}>
      <span aria-hidden="true">{SIGNS[state] ?? "?"}</span> {small ? <span className="unseen">{state}</span> : state}
    </span>
  );
}

/** How a session is; of one that does not run, since when and why. */
export function SessionBadge({ session, now }: { session: Pick<SessionInfo, "status" | "lost" | "stoppedAt" | "reason">; now: number }): ReactNode {
  const since = session.stoppedAt && `since ${session.stoppedAt}`;
  return (
    <>
      <Badge state={session.lost ? "lost" : session.status} text={[session.reason, since].filter(Boolean).join(", ")} />
      {session.stoppedAt && <span className="quiet"> {ago(session.stoppedAt, now)}</span>}
    </>
  );
}

export function Count({ state, number }: { state: AgentState; number: number }): ReactNode {
  return (
    <span className={`badge is-${state}`} title={`${number} ${state}`}>
      <span aria-hidden="true">{SIGNS[state]}</span> {number} <span className="wide-only">{state}</span>
    </span>
  );
}

// So many errors are in the message itself.
const TOLD = 3;

export function ProblemBox({ problem, retry }: { problem: Problem; retry?: () => void }): ReactNode {
  return (
    <div className="problem" role="alert">
      <strong>{problem.message.replace(/\bbody\./g, "")}</strong>
      {problem.errors.length > TOLD && (
        <ul>
          {problem.errors.map((error) => (
            <li key={error.where}>
              <code>{error.where.replace(/^body\./, "")}</code> {error.what}
            </li>
          ))}
        </ul>
      )}
      {problem.hint && <p>Try: <code>{problem.hint}</code></p>}
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export function Loading({ what }: { what: string }): ReactNode {
  return <p className="quiet" role="status">Loading {what}…</p>;
}

export function Empty({ children }: { children: ReactNode }): ReactNode {
  return <div className="empty">{children}</div>;
}

/** A window above the page; the browser keeps the focus in it, asks to close it by Escape, and gives the focus back. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ReactNode }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    // A browser takes the first thing there is; the text comes before the target.
    opened?.querySelector("textarea")?.focus();
    return () => opened?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onCancel={(event) => {
        // Only the page closes it: closed by the browser, it would be open for the page still when the next key comes.
        event.preventDefault();
        close();
      }}
      // Some browsers do not let themselves be kept from it every time.
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}
