import assert from "node:assert/strict";
import { test } from "node:test";
import { isBinary, plain, readPart } from "../src/state/part.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("text is distinguished from other data, also if a letter is cut", () => {
  assert.equal(isBinary(bytes("grün\n".repeat(100)).subarray(3)), false);
  assert.equal(isBinary(bytes("")), false);
  assert.equal(isBinary(Uint8Array.of(80, 75, 0, 3)), true);
  assert.equal(isBinary(new Uint8Array(100).fill(0xe9)), true);
});

test("a large file is read in parts, a log from its end", async () => {
  const asked: unknown[] = [];
  const all = bytes("0123456789".repeat(100_000));
  const api = {
    bytes(_: string, query: Record<string, string | number | undefined>) {
      asked.push(query.offset);
      const from = Number(query.offset);
      return Promise.resolve({ data: all.subarray(from, from + Number(query.most)), size: all.length });
    },
  };
  const first = await readPart(api, "id", "big.txt", 0);
  assert.deepEqual([first.from, first.length, first.size, first.whole], [0, 512 << 10, 1_000_000, false]);
  const last = await readPart(api, "id", "big.log", null);
  assert.deepEqual([last.from, last.from + last.length], [1_000_000 - (512 << 10), 1_000_000]);
  assert.deepEqual(asked, [0, 0, last.from]);
});

test("a terminal's text is shown without what only a terminal understands", () => {
  assert.equal(plain("\x1b[32m✓\x1b[0m read\r\n\x1b]2;title\x07\tend"), "✓ read\n\tend");
});
