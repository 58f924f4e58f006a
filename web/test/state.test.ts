import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../src/protocol/api.ts";
import type { MasEvent } from "../src/protocol/shapes.ts";
import { Live } from "../src/state/live.ts";
import { isId, parseRoute, sessionHref, withId } from "../src/state/route.ts";
import { ago, bytes, gapsOf } from "../src/state/words.ts";
import { crop } from "../src/terminal/crop.ts";
import { until } from "./until.ts";

const ANSWERS: Record<string, unknown> = {
  "/sessions": { sessions: [{ sessionId: "s", status: "active", lastActivity: "2026-01-01T00:00:00Z" }], total: 1 },
  "/approvals": { approvals: [] },
  "/stats": { sessions: [] },
  "/sessions/s": { sessionId: "s", status: "active", agents: [{ id: "21", state: "idle" }, { id: "22", state: "idle" }] },
  "/sessions/s/messages": {
    messages: [{ id: "m-1", from: null, target: "all", deliveries: ["21", "22"].map((agent) => ({ agent, state: "queued" })) }],
  },
};

function live(): { live: Live; asked: string[] } {
  const asked: string[] = [];
  const api = new Api((where) => {
    asked.push(where);
    return Promise.resolve(new Response(JSON.stringify(ANSWERS[where.split("?")[0] ?? ""] ?? {})));
  });
  return { live: new Live(api), asked };
}

const event = (fields: Partial<MasEvent>): MasEvent =>
  ({ id: "1.1", at: "2026-02-02T00:00:00Z", event: "agent", sessionId: "s", ...fields }) as MasEvent;

test("events change what is known without asking for all of it", async () => {
  const { live: known, asked } = live();
  known.connected(true);
  const { session } = known.watch("s");
  await until(() => session.detail.get().value !== null && known.sessions.get().value !== null);
  await session.fetchMessages();
  const before = asked.length;
  known.event(event({ agent: "21", state: "blocked", stateText: "permission: run it?", stateSource: "hooks" }));
  const [first, second] = session.detail.get().value?.agents ?? [];
  assert.deepEqual([first?.state, first?.stateText, second?.state], ["blocked", "permission: run it?", "idle"]);
  assert.equal(known.sessions.get().value?.[0]?.lastActivity, "2026-02-02T00:00:00Z");
  known.event(event({ event: "message", messageId: "m-1", agent: "21", state: "acknowledged" }));
  known.event(event({ event: "message", messageId: "m-1", agent: "21", state: "typed" }));
  const states = session.messages.get().value?.[0]?.deliveries.map((delivery) => delivery.state);
  assert.deepEqual(states, ["acknowledged", "queued"]);
  assert.equal(asked.length, before);
});

test("an answer that was on its way when an event came does not undo it", async () => {
  let answer: () => void = () => undefined;
  const api = new Api((where) => new Promise((done) => (answer = () => done(new Response(JSON.stringify(ANSWERS[where.split("?")[0] ?? ""]))))));
  const known = new Live(api);
  const { session } = known.watch("s");
  known.event(event({ agent: "21", state: "blocked" }));
  answer();
  await until(() => session.detail.get().value?.agents[0]?.state === "blocked");
  for (let time = 0; time < 2; time += 1) {
    const looked = session.fetchMessages();
    known.event(event({ event: "message", messageId: "m-1", agent: "21", state: "acknowledged" }));
    answer();
    await looked;
    assert.equal(session.messages.get().value?.[0]?.deliveries[0]?.state, "acknowledged");
  }
});

test("numbers are loaded only while they are shown, questions only if an agent asks", async () => {
  const { live: known, asked } = live();
  const times = (where: string): number => asked.filter((one) => one === where).length;
  known.event(event({ agent: "21", state: "working" }));
  known.event(event({ agent: "21", state: "blocked" }));
  await until(() => times("/approvals") === 1);
  assert.equal(times("/sessions/s/stats"), 0);
  known.stats.subscribe(() => undefined);
  known.catchUp();
  await until(() => times("/sessions/s/stats") === 1);
  known.event(event({ agent: "21", state: "working" }));
  await new Promise((done) => setTimeout(done, 300));
  assert.equal(times("/approvals"), 1);
});

test("what was asked for in vain is asked for again when the server is back", async () => {
  let down = true;
  const asked: string[] = [];
  const known = new Live(
    new Api((where) => {
      asked.push(where);
      return down ? Promise.reject(new TypeError("refused")) : Promise.resolve(new Response(JSON.stringify(ANSWERS[where] ?? {})));
    }),
  );
  await known.fetchSessions();
  assert.equal(known.sessions.get().problem?.code, "unreachable");
  down = false;
  known.link("reconnecting");
  known.link("live");
  await until(() => known.sessions.get().value?.length === 1 && known.sessions.get().problem === null);
  const before = asked.length;
  known.link("reconnecting");
  known.link("live");
  await new Promise((done) => setTimeout(done, 200));
  assert.equal(asked.length, before);
});

test("older messages are loaded on request", async () => {
  const { live: known, asked } = live();
  const { session } = known.watch("s");
  await session.fetchMessages();
  await session.fetchOlder();
  assert.deepEqual(asked.filter((where) => where.includes("messages")), ["/sessions/s/messages?limit=500", "/sessions/s/messages?limit=1000"]);
});

test("an unknown message is looked up", async () => {
  const { live: known, asked } = live();
  const { session } = known.watch("s");
  await session.fetchMessages();
  known.event(event({ event: "message", messageId: "m-9", state: "queued" }));
  await until(() => asked.filter((where) => where.startsWith("/sessions/s/messages")).length === 2);
});

test("a session that ends and is warned of has failed; one that was stopped has not", () => {
  const { live: known } = live();
  const failed = (): (string | undefined)[] => known.failures.get().map((one) => one.sessionId);
  known.event(event({ event: "warning", text: "takes much disk" }));
  known.event(event({ event: "session", sessionId: "other", status: "stopped" }));
  assert.deepEqual(failed(), []);
  known.event(event({ event: "session", status: "stopped" }));
  known.event(event({ event: "warning", text: "its tmux session was gone" }));
  assert.deepEqual(failed(), ["s"]);
  known.event(event({ event: "session", status: "active" }));
  known.event(event({ event: "warning", text: "takes much disk" }));
  assert.deepEqual(failed(), ["s"]);
  assert.equal(known.warnings.get().length, 3);
});

test("an address leads where it came from", () => {
  for (const [tab, rest] of [["team", ""], ["team", "21"], ["files", "unit/21/a b#c.md"], ["messages", ""]] as const) {
    const route = parseRoute(sessionHref("s-1", tab, rest));
    assert.ok(route.page === "session");
    assert.deepEqual([route.id, route.tab, route.agent ?? route.file], ["s-1", tab, rest]);
  }
  assert.deepEqual(parseRoute(""), { page: "sessions" });
  assert.deepEqual(parseRoute("#/nothing/here"), { page: "nowhere" });
  assert.deepEqual(parseRoute("#/sessions/%ff/%zz"), { page: "nowhere" });
});

test("an address with a session's name becomes the same address with its id", () => {
  const id = "550e8400-e29b-41d4-a716-446655440000";
  const route = parseRoute("#/sessions/web%20shop/files/unit/21/a%20b.md");
  assert.ok(route.page === "session" && route.id === "web shop" && !isId(route.id));
  assert.equal(withId("#/sessions/web%20shop/files/unit/21/a%20b.md", id), `#/sessions/${id}/files/unit/21/a%20b.md`);
  assert.equal(withId("#/sessions/web", id), `#/sessions/${id}`);
  assert.ok(isId(id));
});

test("a tile shows the cursor, what is drawn just below it, and the beginning of lines where it can", () => {
  const whole = { columns: 100, rows: 30 };
  const shown = { columns: 50, rows: 10 };
  assert.deepEqual(crop(whole, shown, { column: 3, row: 29 }, 0), { column: 0, row: 20 });
  assert.deepEqual(crop(whole, shown, { column: 3, row: 2 }, 2), { column: 0, row: 0 });
  assert.deepEqual(crop(whole, shown, { column: 60, row: 20 }, 2), { column: 14, row: 13 });
  assert.deepEqual(crop(whole, { columns: 50, rows: 2 }, { column: 3, row: 20 }, 3), { column: 0, row: 20 });
  assert.deepEqual(crop(whole, { columns: 120, rows: 40 }, { column: 99, row: 29 }, 0), { column: 0, row: 0 });
});

test("what a tier does not enforce and what agents do without are two lines, if there are any", () => {
  assert.equal(gapsOf({ notEnforced: [], notAvailable: [] }), "");
  assert.equal(gapsOf({ notEnforced: ["UDP", "names"], notAvailable: ["/tmp"] }), "Not enforced: UDP; names\nNot available: /tmp");
  assert.equal(gapsOf({ notEnforced: [], notAvailable: ["/tmp"] }), "Not available: /tmp");
});

test("numbers and times are short", () => {
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes(65_400_000), "65.4 MB");
  assert.equal(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:03:00Z")), "2 h");
});
