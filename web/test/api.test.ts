import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, path, Problem } from "../src/protocol/api.ts";

function answering(response: Response | Error): { api: Api; asked: [string, RequestInit | undefined][]; out: number[] } {
  const asked: [string, RequestInit | undefined][] = [];
  const out: number[] = [];
  const api = new Api(
    (where, init) => {
      asked.push([where, init]);
      return response instanceof Error ? Promise.reject(response) : Promise.resolve(response);
    },
    () => void out.push(1),
  );
  return { api, asked, out };
}

test("a refusal has the server's message", async () => {
  const body = { code: "bad-input", detail: "No such team", hint: "mas teams", errors: [{ where: "body.team", what: "x" }] };
  const { api } = answering(new Response(JSON.stringify(body), { status: 422 }));
  const problem = (await api.post("/runs", {}).catch((error: unknown) => error)) as Problem;
  assert.deepEqual([problem.status, problem.code, problem.message, problem.hint], [422, "bad-input", "No such team", "mas teams"]);
  assert.deepEqual(problem.errors, [{ where: "body.team", what: "x" }]);
  assert.equal(problem.mayPass, false);
});

test("no answer is a problem that may pass, and an answer that is no JSON is reported by its status", async () => {
  const problem = (await answering(new TypeError("refused")).api.get("/x").catch((error: unknown) => error)) as Problem;
  assert.equal(problem.code, "unreachable");
  assert.ok(problem.mayPass);
  const odd = (await answering(new Response("<html>", { status: 502 })).api.get("/x").catch((error: unknown) => error)) as Problem;
  assert.equal(odd.status, 502);
});

test("a caller that is not signed in learns it", async () => {
  const { api, out } = answering(new Response("{}", { status: 401 }));
  await assert.rejects(api.get("/sessions"), Problem);
  assert.equal(out.length, 1);
});

test("values in paths and queries cannot become more than values", async () => {
  const { api, asked } = answering(new Response("{}"));
  await api.get(path`/sessions/${"a/../b?c"}/agents`, { path: "x&y=z", none: undefined });
  assert.equal(asked[0]?.[0], "/sessions/a%2F..%2Fb%3Fc/agents?path=x%26y%3Dz");
});
