// Which addresses that programs print mean a port of their own session.

import assert from "node:assert/strict";
import { test } from "node:test";
import { insideOf } from "../src/state/ports.ts";

test("an address of loopback is a port of the session", () => {
  for (const host of ["localhost", "127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]", "LOCALHOST"]) {
    assert.deepEqual(insideOf(`http://${host}:3000/a?b=c#d`), { port: 3000, rest: "a?b=c#d" }, host);
  }
  assert.deepEqual(insideOf("http://localhost"), { port: 80, rest: "" });
  assert.deepEqual(insideOf("https://localhost/x"), { port: 443, rest: "x" });
});

test("every other address is opened as it is", () => {
  for (const address of ["https://example.com:3000/", "http://localhost.example.com:3000/", "http://127.0.0.1.example.com/", "http://10.0.0.1:3000/", "ftp://localhost/", "localhost:3000", "http://3000-6f2ac775.localhost:4000/"]) {
    assert.equal(insideOf(address), null, address);
  }
  // A name before the host is not the host.
  assert.equal(insideOf("http://localhost:3000@example.com/"), null);
});
