// What can be done with sessions, with many at a time, and how each is undone.

import { path, told } from "../protocol/api.ts";
import type { SessionInfo, Status } from "../protocol/shapes.ts";
import type { Mas } from "./mas.ts";
import { count, titleOf } from "./words.ts";

export type Verb = "stop" | "restore" | "clone" | "archive" | "delete" | "unarchive" | "undelete";

interface Doing {
  label: string;
  done: string;
  from: readonly Status[];
  back: Verb | null;
}

export const VERBS: Record<Verb, Doing> = {
  stop: { label: "Stop", done: "Stopped", from: ["active"], back: "restore" },
  restore: { label: "Restore", done: "Restored", from: ["stopped"], back: null },
  clone: { label: "Clone", done: "Cloned", from: ["active", "stopped"], back: "delete" },
  archive: { label: "Archive", done: "Archived", from: ["stopped"], back: "unarchive" },
  delete: { label: "Delete", done: "Deleted", from: ["active", "stopped", "error"], back: "undelete" },
  unarchive: { label: "Unarchive", done: "Brought back", from: ["archived"], back: null },
  undelete: { label: "Undelete", done: "Brought back", from: ["deleted"], back: null },
};
const AT_ONCE = 4;
const LONGEST_NAME = 64;

export function verbsFor(status: Status): Verb[] {
  return (Object.keys(VERBS) as Verb[]).filter((verb) => VERBS[verb].from.includes(status));
}

/** What it needs of the page's state. */
export type Able = Pick<Mas, "api" | "notices"> & { live: Pick<Mas["live"], "fetchSessions"> };
type Session = Pick<SessionInfo, "sessionId" | "tmuxSession" | "name" | "status">;
type Answer = Session & { warnings?: string[] };

/** Do it with each of them; say what was done, offer the way back, and name those with which it failed. Answers with how many it was done. */
export async function perform(mas: Able, verb: Verb, sessions: readonly Session[]): Promise<number> {
  const doing = VERBS[verb];
  const done: [Session, Answer][] = [];
  const failed: string[] = [];
  mas.notices.dropUndo();
  await each(sessions, async (session) => {
    try {
      const answer = await call(mas, verb, session);
      for (const warning of answer.warnings ?? []) mas.notices.say(warning);
      done.push([session, answer]);
    } catch (error) {
      const { message, hint } = told(error);
      failed.push(`${titleOf(session)}: ${message}${hint && ` (${hint})`}`);
    }
  });
  await mas.live.fetchSessions();
  if (failed.length > 0) mas.notices.warn(`Not ${doing.done.toLowerCase()}:\n${failed.join("\n")}`);
  const [only] = done;
  if (!only) return 0;
  const what = done.length === 1 ? titleOf(only[0]) : count(done.length, "session");
  // A clone is undone by what was made, everything else by what it was done with.
  const back = done.map(([session, answer]) => (verb === "clone" ? answer : session));
  mas.notices.say(`${doing.done} ${what}`, doing.back ? () => void undo(mas, verb, back) : undefined);
  return done.length;
}

async function undo(mas: Able, verb: Verb, sessions: readonly Session[]): Promise<void> {
  const { back } = VERBS[verb];
  if (!back) return;
  await perform(mas, back, sessions);
  // A session that was running must run again; deleting stopped it.
  const ran = verb === "delete" ? sessions.filter((session) => session.status === "active") : [];
  if (ran.length > 0) await perform(mas, "restore", ran);
}

function call({ api }: Able, verb: Verb, session: Session): Promise<Answer> {
  const where = path`/sessions/${session.sessionId}`;
  if (verb === "delete") return api.delete<Answer>(where);
  if (verb === "clone") return api.post<Answer>(`${where}/clone`, { name: [...`Copy of ${titleOf(session)}`].slice(0, LONGEST_NAME).join("").trim() });
  return api.post<Answer>(`${where}/${verb}`);
}

/** A few at a time: the server has others to answer, too. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const one = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}
