import assert from "node:assert/strict";
import { test } from "node:test";
import { diff, shortened } from "../src/parts/diff.ts";
import { layout, route } from "../src/parts/tree.ts";
import { parseInline, parseMarkdown } from "../src/parts/markdown.ts";
import type { Team } from "../src/protocol/shapes.ts";
import { errorFor, runBody, type RunForm } from "../src/state/run.ts";
import { linesOf, numbersIn, parseMetrics } from "../src/state/samples.ts";

test("Markdown becomes values, and a link leads to the web or nowhere", () => {
  assert.deepEqual(parseInline("a `b` **c** [d](https://e) [f](javascript://alert) <script>"), [
    { kind: "text", text: "a " },
    { kind: "code", text: "b" },
    { kind: "text", text: " " },
    { kind: "strong", text: "c" },
    { kind: "text", text: " " },
    { kind: "link", text: "d", href: "https://e" },
    { kind: "text", text: " " },
    { kind: "text", text: "f" },
    { kind: "text", text: " <script>" },
  ]);
  const kinds = parseMarkdown("# One\n\ntext\nmore\n\n1. a\n   ```sh\n   run\n   ```\n2. b\n\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n# not\n```\n---\n| lone");
  assert.deepEqual(kinds.map((part) => part.kind), ["heading", "paragraph", "list", "quote", "table", "code", "rule", "paragraph"]);
  const list = kinds[2];
  assert.ok(list?.kind === "list" && list.ordered);
  assert.deepEqual(list.items[0]?.map((part) => part.kind), ["paragraph", "code"]);
  assert.deepEqual(list.items[0]?.[1], { kind: "code", text: "run" });
});

test("a difference names what went and what came", () => {
  const said = (before: string, after: string): string => diff(before, after).map((one) => ({ same: " ", gone: "-", new: "+" })[one.kind] + one.text).join("|");
  assert.equal(said("a\nb\nc\nd", "a\nB\nc\ne\nd"), " a|-b|+B| c|+e| d");
  assert.equal(said("x", "x"), " x");
  assert.equal(said("", "a"), "-|+a");
  const long = Array.from({ length: 20 }, (_, line) => String(line));
  const short = shortened(diff(long.join("\n"), long.with(10, "ten").join("\n")));
  assert.deepEqual(short.map((one) => one?.text ?? null), [null, "7", "8", "9", "10", "ten", "11", "12", "13", null]);
});

const agents = [["00", "meta"], ["10", "design"], ["11", "design"], ["20", "development"], ["21", "development"]].map(([id = "", unit = ""]) => ({ id, unit }));

test("a message moves up to the common manager, and down again", () => {
  const nodes = layout(agents);
  const way = (from: string, to: string): string => route(nodes, from, to).map((node) => node.id).join(" ");
  assert.equal(way("11", "21"), "11 10 00 20 21");
  assert.equal(way("21", "20"), "21 20");
  assert.equal(way("person", "21"), "person 00 20 21");
  assert.equal(way("11", "nobody"), "");
  assert.ok(nodes.every((node) => node.x > 0 && node.x < 100));
});

test("numbers are found whatever the server calls them", () => {
  assert.deepEqual(numbersIn({ disk: 5, name: "x", states: { idle: 2 }, sessions: [{ disk: 1 }] }), { disk: 5, "states.idle": 2 });
  const metrics = parseMetrics('# HELP x\nmas_agents{state="idle"} 3\nmas_agents{state="working"} 1\nmas_disk_bytes 5e3\nbad\n');
  assert.deepEqual(metrics, { mas_agents: 4, "mas_agents.idle": 3, "mas_agents.working": 1, mas_disk_bytes: 5000 });
  assert.deepEqual(linesOf([{ at: 1, values: { a: 1 } }, { at: 2, values: {} }], { a: "b" }), [{ label: "b", values: [1, null] }]);
});

const limits = { memory: null, processes: null, cpu: null, files: null, fileSize: null, disk: null };
const given = { provider: null, model: null, command: null, prompt: null, restart: null, restartLimit: null, limits };
const team: Team = {
  name: "pair", agentCount: 2, description: "", routing: "hierarchy", routes: {}, origin: "shipped", problem: "", restart: null, restartLimit: null,
  isolation: { enforce: null, read: [], write: [], hide: [], ports: null, runAs: null, network: null, allow: [], private: [] }, limits: { session: limits, agent: limits },
  units: [{ name: "development", agents: ["20", "21"].map((id) => ({ id, role: `r${id}`, ...given })) }],
};
const form: RunForm = { name: " x ", team: "pair", provider: "", isolation: "", limits: {}, agents: {} };

test("a run in which one agent is changed keeps everything else that the team's file says", () => {
  const [first, second] = team.units[0]!.agents;
  const kept: Team = {
    ...team, restart: "on-failure", restartLimit: 0, routing: "table", routes: { "20": ["21"] },
    units: [
      { name: "meta", agents: [{ ...first!, id: "00", restart: "always", restartLimit: 9 }, { ...second!, id: "01", limits: { ...limits, memory: 5, cpu: 0.5 } }] },
      { name: "development", agents: team.units[0]!.agents },
    ],
  };
  assert.deepEqual(runBody({ ...form, agents: { "21": { model: "small" } } }, kept), {
    name: "x",
    team: "pair",
    routing: { "20": ["21"] },
    restart: "on-failure",
    restartLimit: 0,
    agents: { units: [
      { name: "meta", manager: { id: "00", role: "r20", restart: "always", restartLimit: 9 }, workers: [{ id: "01", role: "r21", limits: { memory: 5, cpu: 0.5 } }] },
      { name: "development", manager: { id: "20", role: "r20" }, workers: [{ id: "21", role: "r21", model: "small" }] },
    ] },
  });
});

test("a run names agents only where one differs from the team", () => {
  assert.deepEqual(runBody(form, team), { name: "x", team: "pair" });
  assert.deepEqual(runBody({ ...form, limits: { memory: "2G", processes: "50", "agent.cpu": "0.5", disk: " " }, isolation: "off", agents: { "21": { model: "small" } } }, team), {
    name: "x",
    team: "pair",
    isolation: "off",
    limits: { memory: "2G", processes: 50, agent: { cpu: 0.5 } },
    agents: { units: [{ name: "development", manager: { id: "20", role: "r20" }, workers: [{ id: "21", role: "r21", model: "small" }] }] },
  });
  assert.equal(errorFor([{ where: "body.name", what: "too long" }], "name"), "too long");
  assert.equal(errorFor([{ where: "body.name", what: "too long" }], "team"), "");
  const limits = [{ where: "body.limits.memory.int", what: "no number" }];
  assert.deepEqual(["limits", "limits.memory", "limits.mem"].map((field) => errorFor(limits, field)), ["no number", "no number", ""]);
});
