import assert from "node:assert/strict";
import { test } from "node:test";
import { Blocks } from "../src/protocol/sse.ts";

const STREAM = 'retry: 1000\n\n: keep-alive\nid: 1.0\n\nid: 1.7\nevent: agent\ndata: {"a":1}\n\n';

test("blocks come whole however the text is cut", () => {
  for (let cut = 0; cut <= STREAM.length; cut += 1) {
    const blocks = new Blocks();
    const found = [...blocks.take(STREAM.slice(0, cut)), ...blocks.take(STREAM.slice(cut))];
    assert.deepEqual(found, [
      { id: "1.0", event: "message", data: null },
      { id: "1.7", event: "agent", data: '{"a":1}' },
    ]);
  }
});

test("all line ends count, and data of several lines is one text", () => {
  const blocks = new Blocks();
  assert.deepEqual(blocks.take("data: a\r"), []);
  assert.deepEqual(blocks.take("\ndata: b\rdata\r\n\r\n"), [{ id: null, event: "message", data: "a\nb\n" }]);
});
