// The page in a real Chromium without a screen: `node test.mjs PAGE SCREENSHOTS`. It is served from a folder of a server, and asks
// for nothing that is not in that folder.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import puppeteer from "puppeteer-core";

const [page, pictures] = process.argv.slice(2);
mkdirSync(pictures, { recursive: true });

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
let refuses = false;
const server = createServer((request, response) => {
  if (refuses) return request.socket.destroy();
  const path = new URL(request.url, "http://host").pathname;
  const file = path.startsWith("/some/folder/") && join(page, normalize(path.slice("/some/folder".length).replace(/\/$/, "/index.html")));
  if (!file || !existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const home = `http://127.0.0.1:${server.address().port}/some/folder/`;

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});
const strange = [];

/** A tab with the page, which is ready. */
async function open(fragment = "", { dark = false, width = 1360, height = 860 } = {}) {
  const tab = await browser.newPage();
  await tab.setViewport({ width, height });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  tab.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(home) && !/^(data|blob|about):/.test(url)) strange.push(`request of ${url}`);
  });
  tab.on("pageerror", (error) => strange.push(`error in the page: ${error.stack ?? error}`));
  tab.on("console", (message) => message.type() === "error" && !refuses && strange.push(`console: ${message.text()}`));
  await tab.goto(home + fragment);
  await tab.waitForSelector("html[data-ready]", { timeout: 20_000 });
  return tab;
}

const text = (tab, selector) => tab.$eval(selector, (node) => node.innerText);
const until = (tab, condition, ...values) => tab.waitForFunction(condition, { timeout: 30_000 }, ...values);
const shows = (tab, selector, words) => until(tab, (selector, words) => document.querySelector(selector)?.innerText.includes(words), selector, words);
/** Leaves a picture; with PTXVM_WRITE_DOCS one for the book, too, if it has this one. */
async function shoot(tab, name) {
  await tab.screenshot({ path: join(pictures, `${name}.png`) });
  const path = new URL(`../../../docs/page-${name}.webp`, import.meta.url).pathname;
  if (process.env.PTXVM_WRITE_DOCS && existsSync(path)) await tab.screenshot({ path, type: "webp", quality: 70 });
}

/** Chooses an example, and waits until its form is there. */
async function example(tab, name) {
  const value = await tab.$$eval("#examples option", (options, name) => options.find((option) => option.textContent.startsWith(name)).value, name);
  await tab.select("#examples", value);
  await until(tab, () => document.querySelector("#problems").innerText !== "" && document.querySelector(".param"));
  // The check of the new text has ended when its colours are there.
  await tab.waitForSelector(".tok-comment");
  await new Promise((resolve) => setTimeout(resolve, 700));
}

async function run(tab, kind = ".ran") {
  await tab.click("#run-button");
  await tab.waitForSelector(`#results ${kind}`, { timeout: 60_000 });
}

/** Puts the cursor behind the first occurrence of some words. */
async function cursorBehind(tab, words) {
  await tab.evaluate((words) => {
    const line = [...document.querySelectorAll(".cm-line")].find((line) => line.textContent.includes(words));
    line.scrollIntoView({ block: "center", inline: "start" });
    document.querySelector(".cm-scroller").scrollLeft = 0;
    const range = document.createRange();
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    let left = line.textContent.indexOf(words) + words.length;
    while (walker.nextNode()) {
      if (left <= walker.currentNode.length) break;
      left -= walker.currentNode.length;
    }
    range.setStart(walker.currentNode, left);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    document.querySelector(".cm-content").focus();
  }, words);
}

const steps = {
  async "a picture, and a profile beside the source"() {
    const tab = await open();
    await example(tab, "Mandelbrot");
    assert.equal(await text(tab, "#problems"), "no errors");
    await run(tab);
    await tab.waitForSelector("canvas");
    const colours = await tab.$eval("canvas", (canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      return { width: canvas.width, height: canvas.height, seen: seen.size };
    });
    assert.deepEqual([colours.width, colours.height], [320, 240]);
    assert.ok(colours.seen > 20, `${colours.seen} colours`);
    await until(tab, () => document.querySelectorAll(".count").length > 10);
    // The loop.
    await tab.$eval(".cm-scroller", (scroller) => (scroller.scrollTop = 10_000));
    await tab.waitForFunction(() => [...document.querySelectorAll(".count")].some((count) => count.textContent.endsWith("M")));
    await shoot(tab, "mandelbrot");
    await tab.close();
  },

  async "numbers and bits"() {
    const tab = await open();
    await example(tab, "Scale: four");
    await run(tab);
    await tab.waitForSelector(".values");
    assert.deepEqual(await tab.$$eval(".values td", (cells) => cells.map((cell) => cell.textContent)), ["10", "25", "-30", "inf"]);
    await tab.evaluate(() => [...document.querySelectorAll(".kinds button")].find((one) => one.textContent === "bits").click());
    await shows(tab, ".values", "0x41200000");
    assert.match(await text(tab, ".ran"), /4 threads, 3\d thread-instructions/);
    // A form of another value: the list becomes longer than the array.
    await tab.$eval('.param input[aria-label*="shape"]', (input) => {
      input.value = "5";
      input.dispatchEvent(new Event("input"));
    });
    await run(tab, ".message");
    assert.match(await text(tab, "#results"), /does not have the 4 elements/);
    await tab.close();
  },

  async "an error as one types, its help, and its fix"() {
    const tab = await open();
    await example(tab, "Scale: four");
    await cursorBehind(tab, "mul.f32");
    for (let i = 0; i < "mul.f32".length; i++) await tab.keyboard.press("Backspace");
    await tab.keyboard.type("mlu.f32");
    await tab.keyboard.press("Escape");
    await shows(tab, "#problems", "1 error");
    assert.match(await text(tab, "#problems"), /line 16 Not a name of any known instruction: 'mlu'/);
    await tab.waitForSelector(".cm-lintRange-error");
    await tab.hover(".cm-lintRange-error");
    await tab.waitForSelector(".cm-diagnosticAction");
    assert.match(await text(tab, ".cm-tooltip-lint"), /did you mean 'mul'/);
    await shoot(tab, "error");
    await tab.click(".cm-diagnosticAction");
    await shows(tab, "#problems", "no errors");
    await run(tab);
    await tab.close();
  },

  async "completion and meaning"() {
    const tab = await open();
    await example(tab, "Scale: four");
    await cursorBehind(tab, "mul");
    await tab.keyboard.type(".");
    await tab.waitForSelector(".cm-tooltip-autocomplete li");
    const offered = await tab.$$eval(".cm-tooltip-autocomplete li", (items) => items.map((item) => item.textContent));
    assert.ok(offered.some((one) => one.includes("rn") || one.includes("hi")), offered.join(" "));
    await tab.keyboard.press("Escape");
    await tab.keyboard.press("Backspace");
    await tab.click("#tab-meaning");
    await shows(tab, "#meaning", "PTX manual");
    await tab.close();
  },

  async "explain and eval"() {
    const tab = await open();
    await example(tab, "Pairs of halves");
    await tab.click("#tab-explain");
    await cursorBehind(tab, "setp.lt.f16x2");
    await shows(tab, "#explain .page", "setp.lt.f16x2");
    await shows(tab, "#explain .page", "results held against");
    await shoot(tab, "explain");
    await tab.click("#tab-eval");
    await tab.click("#eval .ask button");
    await shows(tab, ".evaluated", "lane 0: 2 < 1 is false");
    await shoot(tab, "eval");
    await tab.close();
  },

  async "a fault at its line"() {
    const tab = await open();
    await example(tab, "Saxpy");
    await run(tab, ".message");
    assert.match(await text(tab, "#results"), /access out of bounds: read of 4 bytes[^]*thread \(232,0,0\)/);
    await tab.waitForSelector(".cm-fault");
    assert.match(await text(tab, ".cm-fault"), /ld\.global\.f32/);
    await shoot(tab, "fault");
    await tab.close();
  },

  async "tools and printf"() {
    const tab = await open("", { dark: true });
    await example(tab, "A sum with a race");
    await run(tab);
    assert.match(await text(tab, "#results"), /race-write-read/);
    assert.ok((await tab.$$(".cm-finding")).length >= 1);
    await shoot(tab, "race-dark");
    await example(tab, "printf");
    await run(tab);
    assert.match(await text(tab, "#printed"), /thread 2: 2\.50 -3 local/);
    await tab.close();
  },

  async "lanes through a recorded run"() {
    const tab = await open();
    await example(tab, "Branches that diverge");
    await tab.click("#tab-lanes");
    await tab.click("#lanes .primary");
    await shows(tab, "#lanes [role=status]", "turns of 40 threads");
    await until(tab, () => document.querySelectorAll(".lanes .lane.active").length === 32);
    assert.match(await text(tab, ".turn"), /turn 0 of \d+: lanes 0-31 of warp 0 execute line 16/);
    // Forward until lanes are apart, then a step back and one forward.
    for (let i = 0; i < 60 && !(await tab.$eval("#lanes", (node) => node.innerText.includes("different ways"))); i++) {
      await tab.click('[aria-label="a turn forward"]');
      await shows(tab, ".turn", `turn ${i + 1} of`);
    }
    const apart = await text(tab, "#lanes");
    assert.match(apart, /warp 0: line 26 sent lanes 1,3,5,7,…,31 \(16 lanes\) and 0,2,4,6,…,30 \(16 lanes\) different ways/);
    const [before, marked] = [await text(tab, ".turn"), await text(tab, ".cm-turn")];
    await tab.click('[aria-label="a turn back"]');
    await until(tab, (before) => document.querySelector(".turn").innerText !== before, before);
    await tab.click('[aria-label="a turn forward"]');
    await until(tab, (before) => document.querySelector(".turn").innerText === before, before);
    assert.equal(await text(tab, ".cm-turn"), marked);
    for (let i = 0; i < 4; i++) await tab.click('[aria-label="a turn forward"]');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await shoot(tab, "lanes-states");
    await tab.select('select[aria-label="register"]', "%v");
    await tab.click('[aria-label="to the end"]');
    await shows(tab, ".turn", "the end");
    await shows(tab, ".legend", "3 to 1445");
    for (let i = 0; i < 12; i++) await tab.click('[aria-label="a turn back"]');
    await until(tab, () => document.querySelectorAll(".lanes .lane.valued.active").length > 0);
    await shoot(tab, "lanes-values");
    await tab.close();
  },

  async "a long kernel is stopped, and the page goes on"() {
    const tab = await open();
    await example(tab, "Scale: four");
    await cursorBehind(tab, "mov.u32 %i, %tid.x;");
    await tab.keyboard.type("\nagain: bra again;");
    await shows(tab, "#problems", "no errors");
    await tab.click("#run-button");
    await tab.waitForSelector("#stop-button:not([hidden])");
    await tab.click("#tab-eval");
    await tab.click("#eval .ask button");
    await shows(tab, ".evaluated", "lane 0");
    await tab.click("#stop-button");
    await tab.click("#tab-run");
    await shows(tab, "#results", "stopped");
    await example(tab, "Scale: four");
    await run(tab);
    await tab.close();
  },

  async "a link has the kernel and its arguments"() {
    const tab = await open();
    await example(tab, "Scale: four");
    await cursorBehind(tab, "// data[i]");
    await tab.keyboard.type(" of a link");
    await tab.click("#share-button");
    await until(tab, () => location.hash.length > 20);
    await new Promise((resolve) => setTimeout(resolve, 800));
    const { hash } = new URL(tab.url());
    const other = await open(hash);
    await shows(other, ".cm-content", "// data[i] of a link");
    await other.waitForSelector(".param");
    await run(other);
    await other.waitForSelector(".values");
    assert.equal(await other.$eval(".values td", (cell) => cell.textContent), "10");
    await Promise.all([tab.close(), other.close()]);
  },

  async "without a network, after one visit"() {
    const tab = await open();
    await tab.evaluate(async () => {
      await navigator.serviceWorker.ready;
      const kept = await caches.open("ptxvm");
      while (!(await kept.match("ptxvm.wasm"))) await new Promise((resolve) => setTimeout(resolve, 50));
    });
    refuses = true;
    await tab.reload();
    await tab.waitForSelector("html[data-ready]");
    await example(tab, "Scale: four");
    await run(tab);
    refuses = false;
    await tab.close();
  },

  async "narrow and dark"() {
    const tab = await open("", { dark: true, width: 400, height: 900 });
    await example(tab, "Mandelbrot");
    await run(tab);
    await tab.waitForSelector("canvas");
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 400, `${wide} pixels wide`);
    await tab.screenshot({ path: join(pictures, "narrow-dark.png"), fullPage: true });
    await tab.close();
  },
};

let failed = 0;
for (const [name, step] of Object.entries(steps)) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
  const started = performance.now();
  try {
    await step();
    console.log(`ok: ${name} (${Math.round(performance.now() - started)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}: ${error.stack ?? error}`);
    const tabs = await browser.pages();
    await tabs.at(-1).screenshot({ path: join(pictures, `failed-${failed}.png`) });
    for (const tab of tabs.slice(1)) await tab.close();
  }
}
await browser.close();
server.close();
for (const one of strange) console.log(`not expected: ${one}`);
process.exit(failed || strange.length ? 1 : 0);
