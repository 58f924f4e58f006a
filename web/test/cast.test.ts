import assert from "node:assert/strict";
import { test } from "node:test";
import { Cast } from "../src/terminal/cast.ts";
import { Player } from "../src/terminal/player.ts";

const HEAD = '{"version":2,"width":100,"height":30,"timestamp":5}\n';

function told(text: string): Cast {
  const cast = new Cast();
  cast.take(text);
  return cast;
}

/** A terminal that records what is done to it, and draws on request. */
class Noted {
  said: string[] = [];
  waiting: (() => void)[] = [];

  reset(): void {
    this.said.push("reset");
  }

  resize(columns: number, rows: number): void {
    this.said.push(`${columns}x${rows}`);
  }

  write(text: string, done: () => void): void {
    if (text) this.said.push(text.length > 20 ? `${text.length}` : text);
    this.waiting.push(done);
  }

  async draw(): Promise<string> {
    for (let done = this.waiting.shift(); done; done = this.waiting.shift()) {
      done();
      await new Promise((soon) => setTimeout(soon));
    }
    const said = this.said.join(" ");
    this.said = [];
    return said;
  }
}

test("a recording is known as far as it was read, whatever the pieces", () => {
  const text = `${HEAD}[0.5,"o","a"]\n[1.5,"r","80x24"]\nbroken\n[2.5,"o","b"]\n[3.0,"o","c`;
  const cast = new Cast();
  for (const letter of text) cast.take(letter);
  assert.deepEqual([cast.size, cast.began, cast.seconds, cast.moments.length], [{ columns: 100, rows: 30 }, 5000, 2.5, 3]);
  assert.deepEqual(cast.moments, told(text).moments);
  assert.deepEqual([0, 0.5, 2, 9].map((at) => cast.upTo(at)), [0, 1, 2, 3]);
  cast.take('"]\n');
  assert.equal(cast.seconds, 3);
  assert.throws(() => told("no recording\n"));
  assert.throws(() => told('{"version":1}\n'));
});

test("any moment is shown, forwards from what is there and backwards from the beginning", async () => {
  const stage = new Noted();
  const player = new Player(told(`${HEAD}[1,"o","a"]\n[2,"r","80x24"]\n[3,"o","b"]\n[4,"m","mark"]\n[5,"o","c"]\n`), stage);
  player.seek(0);
  assert.equal(await stage.draw(), "reset 100x30");
  assert.equal(player.next, 1);
  player.seek(4);
  assert.equal(await stage.draw(), "a 80x24 b");
  player.seek(9);
  assert.equal(await stage.draw(), "c");
  assert.equal(player.next, null);
  player.seek(1);
  assert.equal(await stage.draw(), "reset 100x30 a");
});

test("of many moments that are wanted while it draws only the last is drawn", async () => {
  const stage = new Noted();
  const long = "x".repeat(200_000);
  const player = new Player(told(HEAD + Array.from({ length: 9 }, (_, at) => `[${at + 1},"o","${long}"]\n`).join("")), stage);
  player.seek(9);
  player.seek(8);
  player.seek(1);
  // What was begun is finished, and the rest of it left.
  assert.equal(await stage.draw(), "reset 100x30 400000 reset 200000");
  player.seek(9);
  player.leave();
  assert.equal(await stage.draw(), "400000");
});
