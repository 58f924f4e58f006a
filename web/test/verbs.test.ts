import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../src/protocol/api.ts";
import type { Status, Team } from "../src/protocol/shapes.ts";
import { Notices } from "../src/state/notices.ts";
import { teamOf } from "../src/state/teams.ts";
import { perform, type Able } from "../src/state/verbs.ts";
import { until } from "./until.ts";

const session = (name: string, status: Status = "active"): { sessionId: string; tmuxSession: string; name: string; status: Status } => ({
  sessionId: name,
  tmuxSession: `mas-${name}`,
  name,
  status,
});

/** A server that refuses some, and answers with the rest. */
function able(refused: readonly string[] = []): { mas: Able; asked: string[]; said: () => string[] } {
  const asked: string[] = [];
  const api = new Api((where, init) => {
    asked.push(`${init?.method} ${where}${typeof init?.body === "string" ? ` ${init.body}` : ""}`);
    const name = where.split("/")[2] ?? "";
    if (refused.includes(name)) return Promise.resolve(new Response(JSON.stringify({ code: "busy", detail: `${name} is busy` }), { status: 409 }));
    const made = where.endsWith("/clone") ? session(`${name}-2`, "stopped") : session(name);
    return Promise.resolve(new Response(JSON.stringify(made)));
  });
  const notices = new Notices();
  const mas = { api, notices, live: { fetchSessions: () => Promise.resolve() } };
  return { mas, asked, said: () => notices.all.get().map((notice) => notice.text) };
}

test("those with which it failed are named, and only the others are undone", async () => {
  const { mas, asked, said } = able(["b", "f"]);
  await perform(mas, "stop", [..."abcdefg"].map((name) => session(name)));
  assert.deepEqual(said(), ["Not stopped:\nb: b is busy\nf: f is busy", "Stopped 5 sessions"]);
  assert.equal(asked.length, 7);
  mas.notices.all.get().at(-1)?.undo?.();
  await until(() => said().includes("Restored 5 sessions"));
  assert.deepEqual(asked.slice(7).sort(), [..."acdeg"].map((name) => `POST /sessions/${name}/restore`));
});

test("what ran when it was deleted runs again when that is undone", async () => {
  const { mas, asked, said } = able();
  await perform(mas, "delete", [session("a"), session("b", "stopped")]);
  mas.notices.all.get().at(-1)?.undo?.();
  await until(() => said().includes("Restored a"));
  assert.deepEqual(asked, ["DELETE /sessions/a", "DELETE /sessions/b", "POST /sessions/a/undelete", "POST /sessions/b/undelete", "POST /sessions/a/restore"]);
});

test("a clone has a name of its own, and is undone by deleting it and not its source", async () => {
  const { mas, asked, said } = able();
  await perform(mas, "clone", [session("a")]);
  assert.deepEqual(said(), ["Cloned a"]);
  mas.notices.all.get().at(-1)?.undo?.();
  await until(() => said().includes("Deleted a-2"));
  assert.deepEqual(asked, ['POST /sessions/a/clone {"name":"Copy of a"}', "DELETE /sessions/a-2"]);
});

test("a session's team is the one with the same agents in the same units", () => {
  const team = { name: "pair", units: [{ name: "development", agents: [{ id: "21" }, { id: "23" }] }] } as Team;
  const agents = (...ids: string[]): { agents: never[] } => ({ agents: ids.map((id) => ({ id, unit: "development" })) as never[] });
  assert.equal(teamOf(agents("23", "21"), [team]), "pair");
  assert.equal(teamOf(agents("21"), [team]), "development");
});
