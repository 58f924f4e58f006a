import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../src/protocol/api.ts";
import type { MasEvent, Message, Stats } from "../src/protocol/shapes.ts";
import { Sampler } from "../src/state/sampler.ts";
import { added } from "../src/state/samples.ts";
import { Traffic, trafficOf } from "../src/state/traffic.ts";
import { until } from "./until.ts";

const stats = (status: string): Stats => ({ host: { cpu: 1 }, sessions: [{ sessionId: "s", status, cpu: 0.5, states: { idle: 1 } }] }) as unknown as Stats;

test("numbers of the machine and of what runs are kept while they are not shown", async () => {
  let status = "active";
  const api = new Api((where) => Promise.resolve(new Response(where === "/metrics" ? 'mas_messages{state="queued"} 2\n' : JSON.stringify(stats(status)))));
  const sampler = new Sampler(api, undefined, 5);
  const leave = sampler.watch();
  await until(() => sampler.numbers.get().host.length === 2);
  leave();
  const { host, sessions, last } = sampler.numbers.get();
  assert.deepEqual(host[0]?.values, { "mas_messages.queued": 2, mas_messages: 2, "host.cpu": 1 });
  assert.deepEqual(sessions.get("s")?.[1]?.values, { cpu: 0.5, "states.idle": 1 });
  assert.equal(last?.sessions.length, 1);
  status = "stopped";
  const again = sampler.watch();
  await until(() => sampler.numbers.get().host.length >= 3);
  assert.equal(sampler.numbers.get().sessions.has("s"), false);
  again();
});

test("a server that does not answer is a problem, and what was known stays", async () => {
  let down = false;
  const api = new Api((where) => (down ? Promise.reject(new TypeError("refused")) : Promise.resolve(new Response(where === "/metrics" ? "" : JSON.stringify(stats("active"))))));
  const sampler = new Sampler(api, undefined, 5);
  const leave = sampler.watch();
  await until(() => sampler.numbers.get().host.length > 0);
  down = true;
  await until(() => sampler.numbers.get().problem?.code === "unreachable");
  assert.ok(sampler.numbers.get().host.length > 0);
  leave();
});

test("no line is drawn through the time a laptop slept", () => {
  const two = added(added([], { a: 1 }, 10_000), { a: 2 }, 13_000);
  assert.deepEqual(two.map((sample) => sample.at), [10, 13]);
  assert.deepEqual(added(two, { a: 3 }, 3_600_000).map((sample) => [sample.at, sample.values.a]), [[10, 1], [13, 2], [14, undefined], [3600, 3]]);
});

test("messages are counted by the minute, from events and from what is known of them", () => {
  const at = "2026-01-01T00:30:10Z";
  const now = Date.parse("2026-01-01T00:31:00Z");
  const traffic = new Traffic();
  for (const state of ["queued", "typed", "acknowledged", "acknowledged"]) traffic.hear({ event: "message", state, at } as unknown as MasEvent);
  traffic.hear({ event: "agent", state: "sent", at } as unknown as MasEvent);
  const last = (from: Traffic): (number | null | undefined)[] => from.lines(now).lines.map((line) => line.values.at(-2));
  assert.deepEqual(last(traffic), [1, 2, 0]);
  const deliveries = ["acknowledged", "undelivered"].map((state) => ({ agent: "21", state, at, reason: null }));
  assert.deepEqual(last(trafficOf([{ createdAt: at, deliveries } as unknown as Message])), [1, 1, 1]);
  assert.equal(traffic.lines(now).times.at(-2), Date.parse("2026-01-01T00:30:00Z") / 1000);
});
