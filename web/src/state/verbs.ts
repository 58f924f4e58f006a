// What can be done with sessions, and how each is undone.

import { path } from "../protocol/api.ts";
import type { SessionInfo, Status } from "../protocol/shapes.ts";
import type { Mas } from "./mas.ts";
import { count } from "./words.ts";

export type Verb = "stop" | "restore" | "archive" | "delete" | "unarchive" | "undelete";

interface Doing {
  label: string;
  done: string;
  from: readonly Status[];
  back: Verb | null;
}

export const VERBS: Record<Verb, Doing> = {
  stop: { label: "Stop", done: "Stopped", from: ["active"], back: "restore" },
  restore: { label: "Restore", done: "Restored", from: ["stopped"], back: null },
  archive: { label: "Archive", done: "Archived", from: ["stopped"], back: "unarchive" },
  delete: { label: "Delete", done: "Deleted", from: ["active", "stopped", "error"], back: "undelete" },
  unarchive: { label: "Unarchive", done: "Brought back", from: ["archived"], back: null },
  undelete: { label: "Undelete", done: "Brought back", from: ["deleted"], back: null },
};

export function verbsFor(status: Status): Verb[] {
  return (Object.keys(VERBS) as Verb[]).filter((verb) => VERBS[verb].from.includes(status));
}

interface Answer {
  warnings?: string[];
}

/** Do it with each of them; say what was done, and offer the way back. */
export async function perform(mas: Mas, verb: Verb, sessions: readonly SessionInfo[]): Promise<void> {
  const doing = VERBS[verb];
  const done: SessionInfo[] = [];
  mas.notices.dropUndo();
  for (const session of sessions) {
    try {
      const where = path`/sessions/${session.sessionId}`;
      const call = verb === "delete" ? mas.api.delete<Answer>(where) : mas.api.post<Answer>(`${where}/${verb}`);
      for (const warning of (await call).warnings ?? []) mas.notices.say(warning);
      done.push(session);
    } catch (error) {
      mas.notices.fail(`${doing.label} ${session.name ?? session.tmuxSession}`, error);
    }
  }
  await mas.live.fetchSessions();
  if (done.length === 0) return;
  const [only] = done;
  const what = done.length === 1 && only ? (only.name ?? only.tmuxSession) : count(done.length, "session");
  // A session that ran is to run again; deleting stopped it.
  const back = (): void => void undo(mas, verb, done);
  mas.notices.say(`${doing.done} ${what}`, doing.back ? back : undefined);
}

async function undo(mas: Mas, verb: Verb, sessions: readonly SessionInfo[]): Promise<void> {
  const { back } = VERBS[verb];
  if (!back) return;
  await perform(mas, back, sessions);
  if (verb === "delete") {
    const ran = sessions.filter((session) => session.status === "active");
    if (ran.length > 0) await perform(mas, "restore", ran);
  }
}
