// Bundles the module and its style into the Python package. `node build.mjs --check` builds nothing and fails when the committed
// files are not what the sources give, or when they are too big for a notebook that stores them with every view.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const target = new URL("../vcnb/notebook/widget/static/", import.meta.url);
const LIMIT = 30_000;

async function bundle(entry) {
  const made = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    write: false,
  });
  return made.outputFiles[0].text;
}

const check = process.argv.includes("--check");
let failed = false;
for (const [entry, name] of [["src/index.ts", "view.js"], ["src/view.css", "view.css"]]) {
  const text = await bundle(entry);
  const file = new URL(name, target);
  const size = Buffer.byteLength(text);
  if (size > LIMIT) {
    console.error(`${name} has ${size} bytes, ${LIMIT} are allowed`);
    failed = true;
  }
  if (!check) {
    writeFileSync(file, text);
  } else if (readFileSync(file, "utf8") !== text) {
    console.error(`${name} is not what the sources give: run npm run build and commit it`);
    failed = true;
  }
  console.log(`${name}: ${size} bytes`);
}
process.exit(failed ? 1 : 0);
