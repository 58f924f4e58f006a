import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { Problem } from "../src/protocol/api.ts";
import { Door, type Key, type Keys } from "../src/protocol/door.ts";

const HOST = "127.0.0.1:7717";
const CODE = "ab".repeat(24);

function mac(secret: string, text: string): string {
  return createHmac("sha256", secret).update(text).digest("hex");
}

class Memory implements Keys {
  readonly kept = new Map<string, Key>();
  all = async (): Promise<Key[]> => [...this.kept.values()];
  put = async (key: Key): Promise<void> => void this.kept.set(key.name, key);
  remove = async (name: string): Promise<void> => void this.kept.delete(name);
}

/** What the server does, with the secrets of one workspace. */
class Server {
  readonly asked: string[] = [];
  readonly signedIn = new Set<string>();
  code: string | null = CODE;
  bearer = "";
  isAway = false;
  answer = 200;
  private run = 0;

  constructor(private readonly secret = "the workspace's") {}

  fetch = async (where: string, init: RequestInit = {}): Promise<Response> => {
    if (this.isAway) throw new TypeError("refused");
    this.asked.push(where);
    const body = (typeof init.body === "string" ? JSON.parse(init.body) : {}) as Record<string, string>;
    if (where === "/browser/hello") return this.hello(body as unknown as { nonce: string; keys: string[] });
    if (where === "/browser/bearer") return this.enter(body);
    const bearer = new Headers(init.headers).get("Authorization");
    return new Response("{}", { status: bearer === `Bearer ${this.bearer}` ? 200 : 401 });
  };

  restart(): void {
    this.bearer = "";
  }

  private keyOf(name: string): string {
    const isCode = this.code !== null && name === mac(this.code, "name").slice(0, 32);
    return isCode ? (this.code ?? "") : mac(this.secret, name);
  }

  private hello({ nonce, keys }: { nonce: string; keys: string[] }): Response {
    const challenge = randomBytes(8).toString("hex");
    const proofs = keys.map((name) => mac(this.keyOf(name), `server ${name} ${HOST} ${nonce} ${challenge}`));
    return new Response(JSON.stringify({ challenge, proofs }), { status: this.answer });
  }

  private enter({ key = "", nonce = "", challenge = "", proof = "" }: Record<string, string>): Response {
    const secret = this.keyOf(key);
    assert.equal(proof, mac(secret, `page ${key} ${HOST} ${nonce} ${challenge}`));
    let made: { name: string; sealed: string } | null = null;
    if (secret === this.code) {
      const name = randomBytes(16).toString("hex");
      const sealed = BigInt(`0x${this.keyOf(name)}`) ^ BigInt(`0x${mac(secret, `seal ${challenge}`)}`);
      made = { name, sealed: sealed.toString(16).padStart(64, "0") };
      this.signedIn.add(name);
      this.code = null;
    } else if (!this.signedIn.has(key)) {
      return new Response("{}", { status: 401 });
    }
    this.run += 1;
    this.bearer = `bearer-${this.run}`;
    return new Response(JSON.stringify({ bearer: this.bearer, seconds: 900, key: made }));
  }
}

async function problemOf(call: Promise<unknown>): Promise<Problem> {
  const error: unknown = await call.then(() => null, (thrown: unknown) => thrown);
  assert.ok(error instanceof Problem, String(error));
  return error;
}

async function signedIn(): Promise<{ server: Server; keys: Memory; door: Door }> {
  const server = new Server();
  const keys = new Memory();
  const door = new Door(server.fetch, keys, HOST, CODE);
  assert.equal((await door.fetch("/sessions")).status, 200);
  return { server, keys, door };
}

test("a code signs in, once, and a key that cannot be read is kept", async () => {
  const { server, keys } = await signedIn();
  assert.deepEqual(server.asked, ["/browser/hello", "/browser/bearer", "/sessions"]);
  const [key] = await keys.all();
  assert.equal(key?.secret.extractable, false);
  // Another tab has the key.
  assert.equal((await new Door(server.fetch, keys, HOST).fetch("/sessions")).status, 200);
});

test("many calls at once prove once", async () => {
  const { server, keys } = await signedIn();
  server.asked.length = 0;
  const door = new Door(server.fetch, keys, HOST);
  await Promise.all([door.fetch("/a"), door.fetch("/b"), door.fetch("/c")]);
  assert.deepEqual(server.asked, ["/browser/hello", "/browser/bearer", "/a", "/b", "/c"]);
});

test("a browser without a key asks for nothing", async () => {
  const server = new Server();
  assert.equal((await problemOf(new Door(server.fetch, new Memory(), HOST).fetch("/sessions"))).out, "signed-out");
  assert.deepEqual(server.asked, []);
});

test("a server of another workspace gets a nonce and nothing else, until somebody asks to try again", async () => {
  const { keys, server } = await signedIn();
  for (const answer of [200, 401, 404, 500]) {
    const other = new Server("another workspace's");
    other.answer = answer;
    const door = new Door(other.fetch, keys, HOST);
    for (let turn = 0; turn < 3; turn += 1) assert.equal((await problemOf(door.fetch("/sessions"))).out, "stranger");
    assert.deepEqual(other.asked, ["/browser/hello"]);
    door.again();
    await problemOf(door.fetch("/sessions"));
    assert.deepEqual(other.asked, ["/browser/hello", "/browser/hello"]);
  }
  assert.equal((await new Door(server.fetch, keys, HOST).fetch("/sessions")).status, 200);
});

test("after a break the server proves itself before the next call, and a proxy without a server may pass", async () => {
  const { server, door } = await signedIn();
  server.asked.length = 0;
  server.isAway = true;
  await assert.rejects(door.fetch("/sessions"), TypeError);
  server.isAway = false;
  server.restart();
  server.answer = 502;
  assert.ok((await problemOf(door.fetch("/sessions"))).mayPass);
  server.answer = 200;
  assert.equal((await door.fetch("/sessions")).status, 200);
  assert.deepEqual(server.asked, ["/browser/hello", "/browser/hello", "/browser/bearer", "/sessions"]);
});

test("an answer that breaks off proves nothing, and may pass", async () => {
  const { keys } = await signedIn();
  const broken = new ReadableStream({ start: (controller) => controller.error(new TypeError("network error")) });
  const door = new Door(() => Promise.resolve(new Response(broken)), keys, HOST);
  await assert.rejects(door.fetch("/sessions"), TypeError);
});

test("a bearer that the server does not know any more is made again, once", async () => {
  const { server, door } = await signedIn();
  server.restart();
  assert.equal((await door.fetch("/sessions")).status, 200);
  server.signedIn.clear();
  server.restart();
  assert.equal((await problemOf(door.fetch("/sessions"))).out, "signed-out");
});

test("a used link is one, but a browser that is signed in just goes in", async () => {
  const { server, keys } = await signedIn();
  const known = new Door(server.fetch, keys, HOST, CODE);
  assert.equal((await known.fetch("/sessions")).status, 200);
  assert.equal(known.isLinkUsed, false);
  server.asked.length = 0;
  const unknown = new Door(server.fetch, new Memory(), HOST, CODE);
  assert.equal((await problemOf(unknown.fetch("/sessions"))).out, "signed-out");
  assert.equal(unknown.isLinkUsed, true);
  assert.deepEqual(server.asked, ["/browser/hello"]);
});

test("keys of several servers at one address do not replace each other", async () => {
  const { server, keys } = await signedIn();
  const other = new Server("another workspace's");
  assert.equal((await new Door(other.fetch, keys, HOST, CODE).fetch("/sessions")).status, 200);
  for (const one of [server, other]) assert.equal((await new Door(one.fetch, keys, HOST).fetch("/sessions")).status, 200);
});
