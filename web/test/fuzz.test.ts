import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMarkdown, type Inline, type Part } from "../src/parts/markdown.ts";
import { Blocks, type Block } from "../src/protocol/sse.ts";
import { Cast, sizeOf } from "../src/terminal/cast.ts";

/** Numbers that are the same for the same seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function made(pieces: readonly string[], random: (below: number) => number): string {
  return Array.from({ length: random(30) }, () => pieces[random(pieces.length)] ?? "").join("");
}

const MARKS = ["# ", "## x #", "- ", "1. ", "  ", "\n", "\n\n", "```", "~~~\n", "> ", "|", "|-|\n", "*", "**", "`", "[a](", "https://x)", "javascript:x)", "]", "[", "word", "\u2028", "\r", "<b>", "\0", "***\n"];
const LINES = ['{"version":2,"width":80,"height":24}', "\n", '[1,"o","x"]', '[2,"r","100x30"]', '[3,"r","999999999x9"]', "[", "null", "{}", '["x"]', '[1e999,"o",""]', '{"version":2,"width":1e9,"height":-1}', '[1,"z","x"]', "9"];
const FIELDS = ["data: x", "data", ":", "id: 1", "event: e", "\n", "\n\n", "\r\n", "\r", "data:  y", "other: z", "é"];

test("whatever Markdown an agent writes becomes values, and links lead to the web alone", () => {
  for (let seed = 0; seed < 3000; seed += 1) parseMarkdown(made(MARKS, numbers(seed))).forEach(check);
});

function check(part: Part): void {
  if (part.kind === "list") part.items.flat().forEach(check);
  else if (part.kind === "table") [part.head, ...part.rows].flat(2).forEach(checkInline);
  else if ("inline" in part) part.inline.forEach(checkInline);
}

function checkInline(inline: Inline): void {
  assert.equal(typeof inline.text, "string");
  if (inline.kind === "link") assert.match(inline.href, /^https?:\/\//i);
}

const LONG = 200_000;
for (const [name, text] of Object.entries({
  brackets: "[".repeat(LONG),
  "links without end": "[a](".repeat(LONG / 4),
  "a heading of blanks": `# ${" ".repeat(LONG)}x`,
  "a table of blanks": `|\n|${" ".repeat(LONG)}x`,
  "a list in a list in a list": `${"- ".repeat(LONG / 2)}x`,
  "an item that ends in a line": `- ${" ".repeat(LONG)}a\u2028`,
  stars: "*a".repeat(LONG / 2),
  quotes: "> ".repeat(LONG / 2),
})) {
  test(`Markdown of ${name} is read in no time`, () => {
    assert.ok(parseMarkdown(text).length > 0);
  });
}

test("whatever a recording holds, it is no terminal that cannot be drawn", () => {
  for (let seed = 0; seed < 3000; seed += 1) {
    const text = made(LINES, numbers(seed));
    try {
      const cast = new Cast();
      cast.take(text);
      for (const size of [cast.size, ...cast.moments.map(sizeOf)]) {
        for (const cells of size ? [size.columns, size.rows] : []) assert.ok(Number.isInteger(cells) && cells >= 1 && cells <= 1000, text);
      }
      assert.ok(cast.upTo(2) <= cast.moments.length);
      assert.ok(cast.moments.every((moment) => ["o", "r", "m"].includes(moment.kind)));
    } catch (error) {
      // What has no header is no recording; the page says so.
      if (!(error instanceof SyntaxError) && !/Not a recording/.test(String(error))) throw error;
    }
  }
});

test("however a stream of events is cut, it says the same", () => {
  for (let seed = 0; seed < 3000; seed += 1) {
    const random = numbers(seed);
    const text = made(FIELDS, random);
    const whole = new Blocks().take(text);
    const cut = new Blocks();
    const found: Block[] = [];
    for (let at = 0; at < text.length; ) {
      const size = 1 + random(5);
      found.push(...cut.take(text.slice(at, at + size)));
      at += size;
    }
    assert.deepEqual(found, whole, JSON.stringify(text));
  }
});
