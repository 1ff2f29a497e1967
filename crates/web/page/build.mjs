// Bundles the page into the folder that is its first argument, and prints what a visitor downloads. The second argument is the profile
// of the program.
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

/** The most bytes of all files, compressed by gzip. */
const MOST = 3_000_000;

const [out, profile] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const common = { bundle: true, minify: true, format: "esm", target: "es2022", loader: { ".ptx": "text" }, logLevel: "warning", legalComments: "none" };
await build({ ...common, entryPoints: ["src/main.js"], outfile: `${out}/main.js` });
await build({ ...common, entryPoints: ["src/worker.js"], format: "iife", outfile: `${out}/worker.js` });
await build({ ...common, entryPoints: ["src/offline.js"], format: "iife", outfile: `${out}/offline.js` });
for (const name of ["index.html", "style.css", "icon.svg"]) cpSync(name, `${out}/${name}`);

if (profile === "wasm") {
  let [plain, gzip, brotli] = [0, 0, 0];
  for (const name of readdirSync(out)) {
    const bytes = readFileSync(`${out}/${name}`);
    const sizes = [statSync(`${out}/${name}`).size, gzipSync(bytes, { level: 9 }).length,
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }).length];
    [plain, gzip, brotli] = [plain + sizes[0], gzip + sizes[1], brotli + sizes[2]];
    console.log(`${name}: ${sizes[0]} bytes, gzip ${sizes[1]}, brotli ${sizes[2]}`);
  }
  console.log(`all: ${plain} bytes, gzip ${gzip}, brotli ${brotli}`);
  if (gzip > MOST) throw new Error(`the page has more than ${MOST} bytes, compressed`);
}
