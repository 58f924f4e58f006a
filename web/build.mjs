// Builds the page into the directory named first: index.html, and assets whose names change with their content.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const target = process.argv[2];
if (target === undefined) throw new Error("Where to?");
const assets = join(target, "assets");
rmSync(target, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });

const made = await build({
  entryPoints: { page: "src/main.tsx" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  metafile: true,
  legalComments: "none",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  loader: { ".svg": "file" },
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  outdir: assets,
  logLevel: "warning",
});

const outputs = Object.entries(made.metafile.outputs);
const script = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
if (!script) throw new Error("There is no page");
const [path, main] = script;
const style = main.cssBundle ? `<link rel="stylesheet" href="/assets/${basename(main.cssBundle)}">` : "";
// What the first script needs at once comes at the same time as it.
const needed = main.imports
  .filter((one) => one.kind === "import-statement")
  .map((one) => `<link rel="modulepreload" href="/assets/${basename(one.path)}">`);
const html = readFileSync("src/index.html", "utf8")
  .replace("<!-- style -->", style + needed.join(""))
  .replace("<!-- script -->", `<script type="module" src="/assets/${basename(path)}"></script>`);
writeFileSync(join(target, "index.html"), html);

for (const name of readdirSync(assets)) {
  const body = readFileSync(join(assets, name));
  writeFileSync(join(assets, `${name}.gz`), gzipSync(body, { level: 9 }));
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  writeFileSync(join(assets, `${name}.br`), brotliCompressSync(body, { params: quality }));
}
