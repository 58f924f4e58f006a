import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../src/protocol/api.ts";
import { Feed, type Hearing } from "../src/protocol/feed.ts";
import { until } from "./until.ts";

/** A server that answers each call with the next of some streams, and then keeps silent. */
class Server {
  readonly asked: string[] = [];
  readonly controllers: ReadableStreamDefaultController<Uint8Array>[] = [];

  constructor(private readonly answers: (string | number)[]) {}

  fetch = (where: string, init: RequestInit = {}): Promise<Response> => {
    this.asked.push(where);
    const answer = this.answers.shift() ?? "";
    if (typeof answer === "number") {
      return answer === 0 ? Promise.reject(new TypeError("refused")) : Promise.resolve(new Response("{}", { status: answer }));
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(answer));
        if (this.answers.length > 0) controller.close();
        else init.signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
      },
    });
    return Promise.resolve(new Response(body));
  };
}

class Heard implements Hearing {
  readonly all: string[] = [];
  event = (event: { id: string }): void => void this.all.push(event.id);
  connected = (anew: boolean): void => void this.all.push(anew ? "anew" : "again");
  link = (link: string): void => void this.all.push(link);
}

const one = (id: string): string => `id: ${id}\nevent: agent\ndata: {"id":"${id}","event":"agent"}\n\n`;

test("it goes on from the last event after the server was away", async (t) => {
  const server = new Server([one("1.5"), 0, one("1.9"), ""]);
  const heard = new Heard();
  const feed = new Feed(new Api(server.fetch), heard);
  t.after(() => feed.close());
  feed.start();
  await until(() => server.asked.length === 4);
  assert.deepEqual(server.asked, ["/events", "/events?after=1.5", "/events?after=1.5", "/events?after=1.9"]);
  assert.deepEqual(
    heard.all.slice(0, 8),
    ["connecting", "live", "anew", "1.5", "reconnecting", "reconnecting", "live", "again"],
  );
});

test("a gap means to look at everything again", async (t) => {
  const heard = new Heard();
  const feed = new Feed(new Api(new Server(['event: gap\ndata: {"after":"0"}\n\n']).fetch), heard);
  t.after(() => feed.close());
  feed.start();
  await until(() => heard.all.filter((word) => word === "anew").length === 2);
});

test("a stream that has become silent is opened again", async (t) => {
  const server = new Server([one("1.5")]);
  const feed = new Feed(new Api(server.fetch), new Heard(), 20);
  t.after(() => feed.close());
  feed.start();
  await until(() => server.asked.length >= 2);
  assert.equal(server.asked[1], "/events?after=1.5");
});

test("a page that is signed out learns it, and does not ask again and again", async (t) => {
  const server = new Server([401]);
  const heard = new Heard();
  const feed = new Feed(new Api(server.fetch), heard);
  t.after(() => feed.close());
  feed.start();
  await until(() => heard.all.includes("signed-out"));
  await new Promise((done) => setTimeout(done, 400));
  assert.equal(server.asked.length, 1);
});
