// Bundles the tests into out/test/ and runs them with Node's own runner.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("out/test", { recursive: true, force: true });
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => `test/${name}`),
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: "out/test",
  outExtension: { ".js": ".mjs" },
  logLevel: "warning",
});
const files = tests.map((name) => `out/test/${name.replace(/\.ts$/, ".mjs")}`);
const done = spawnSync(process.execPath, ["--test", "--test-reporter=dot", "--test-timeout=30000", "--test-force-exit", ...files], { stdio: "inherit" });
process.exit(done.status ?? 1);
