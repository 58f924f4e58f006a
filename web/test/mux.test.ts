import assert from "node:assert/strict";
import { test } from "node:test";
import { Mux, type Sink, type Wire } from "../src/protocol/mux.ts";
import { until } from "./until.ts";

class FakeWire implements Wire {
  binaryType = "";
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onmessage: ((event: { data: unknown } & never) => void) | null = null;
  readonly sent: (Record<string, unknown> | Uint8Array)[] = [];

  send(data: string | Uint8Array): void {
    this.sent.push(typeof data === "string" ? (JSON.parse(data) as Record<string, unknown>) : data);
  }
  close(): void {
    this.readyState = 3;
  }
  open(): void {
    this.readyState = 1;
    this.onopen?.({} as never);
  }
  drop(): void {
    this.readyState = 3;
    this.onclose?.({} as never);
  }
  say(fields: object): void {
    this.onmessage?.({ data: JSON.stringify(fields) } as never);
  }
  pour(channel: number, size: number): void {
    const data = new Uint8Array(size + 2);
    new DataView(data.buffer).setUint16(0, channel);
    this.onmessage?.({ data: data.buffer } as never);
  }
  acks(): unknown[] {
    return this.sent.flatMap((frame) => (!(frame instanceof Uint8Array) && frame.type === "ack" ? [frame.bytes] : []));
  }
}

class Shown implements Sink {
  readonly all: string[] = [];
  readonly pending: (() => void)[] = [];
  screen = (columns: number, rows: number, data: Uint8Array, done: () => void): void => {
    this.all.push(`screen ${columns}x${rows} ${data.length}`);
    this.pending.push(done);
  };
  data = (data: Uint8Array, done: () => void): void => {
    this.all.push(`data ${data.length}`);
    this.pending.push(done);
  };
  end = (status: number | null): void => void this.all.push(`end ${status}`);
  error = (code: string): void => void this.all.push(`error ${code}`);
  live = (live: boolean): void => void this.all.push(live ? "live" : "away");
  draw(): void {
    for (const done of this.pending.splice(0)) done();
  }
}

function opened(): { mux: Mux; wires: FakeWire[]; wire: () => FakeWire } {
  const wires: FakeWire[] = [];
  const mux = new Mux(async () => {
    wires.push(new FakeWire());
    return wires.at(-1) as FakeWire;
  });
  return { mux, wires, wire: () => wires.at(-1) as FakeWire };
}

const dialled = (): Promise<void> => new Promise((done) => setTimeout(done));

test("a screen is the frame behind its announcement, all else is what the agent prints", async () => {
  const { mux, wire } = opened();
  const shown = new Shown();
  const channel = mux.subscribe("s", "21", shown);
  await dialled();
  wire().open();
  assert.deepEqual(wire().sent, [{ type: "subscribe", channel: channel.number, sessionId: "s", agent: "21" }]);
  wire().say({ type: "screen", channel: channel.number, columns: 100, rows: 30 });
  wire().pour(channel.number, 5);
  wire().pour(channel.number, 7);
  wire().pour(channel.number + 1, 9);
  wire().say({ type: "end", channel: channel.number, exitStatus: 3 });
  assert.deepEqual(shown.all, ["live", "screen 100x30 5", "data 7", "end 3"]);
});

test("what was drawn is acknowledged in pieces of 64 kB, and only once it was drawn", async () => {
  const { mux, wire } = opened();
  const shown = new Shown();
  const { number } = mux.subscribe("s", "21", shown);
  await dialled();
  wire().open();
  for (let piece = 0; piece < 3; piece += 1) wire().pour(number, 30 << 10);
  assert.deepEqual(wire().acks(), []);
  shown.draw();
  assert.deepEqual(wire().acks(), [90 << 10]);
  wire().pour(number, 60 << 10);
  shown.draw();
  assert.deepEqual(wire().acks(), [90 << 10]);
});

test("after a break everything is subscribed again, and nothing from before is acknowledged", async () => {
  const { mux, wires, wire } = opened();
  const shown = new Shown();
  const channel = mux.subscribe("s", "21", shown);
  await dialled();
  wire().open();
  channel.resize(80, 24);
  wire().pour(channel.number, 100 << 10);
  wire().drop();
  assert.equal(shown.all.at(-1), "away");
  assert.equal(channel.type("x"), false);
  await until(() => wires.length === 2);
  await dialled();
  wire().open();
  shown.draw();
  assert.deepEqual(wire().sent, [
    { type: "subscribe", channel: channel.number, sessionId: "s", agent: "21" },
    { type: "resize", channel: channel.number, columns: 80, rows: 24 },
  ]);
  channel.close();
});

test("keys go out behind the channel's number, high byte first, in frames the server takes", async () => {
  const { mux, wire } = opened();
  let channel = mux.subscribe("s", "00", new Shown());
  for (let more = 0; more < 300; more += 1) channel = mux.subscribe("s", "21", new Shown());
  await dialled();
  wire().open();
  const before = wire().sent.length;
  channel.type("é".repeat(10_000));
  const frames = wire().sent.slice(before) as Uint8Array[];
  assert.deepEqual(frames.map((frame) => frame.length), [(16 << 10) + 2, 20_000 - (16 << 10) + 2]);
  for (const frame of frames) assert.equal(new DataView(frame.buffer).getUint16(0), channel.number);
});

test("the last to leave closes the connection, and it is not opened again", async () => {
  const { mux, wires, wire } = opened();
  const channel = mux.subscribe("s", "21", new Shown());
  await dialled();
  wire().open();
  channel.close();
  assert.equal(wire().readyState, 3);
  wire().drop();
  await new Promise((done) => setTimeout(done, 300));
  assert.equal(wires.length, 1);
  mux.subscribe("s", "21", new Shown()).close();
  assert.equal(wires.length, 2);
});
