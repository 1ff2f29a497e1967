import { Arguments } from "./arguments.js";
import { element } from "./dom.js";
import { Editor } from "./editor.js";
import { Engine } from "./engine.js";
import { EXAMPLES } from "./examples.js";
import { Lanes } from "./lanes.js";
import { fromFragment, toFragment } from "./link.js";
import { markdown } from "./markdown.js";
import { Evaluate, Explain, instructionOf } from "./panels.js";
import { Results } from "./results.js";

const at = (id) => document.getElementById(id);

// What answers while one types, and what runs kernels: a long kernel does not hold up the editor.
const editing = new Engine();
const running = new Engine();

const explain = new Explain(at("explain"), editing);
const evaluate = new Evaluate(at("eval"), editing);
const results = new Results(at("results"), running, (line, column) => editor.goTo(line, column));

const timers = new Map();

/** Does something after a pause, once. */
function later(name, milliseconds, work) {
  clearTimeout(timers.get(name));
  timers.set(name, setTimeout(work, milliseconds));
}

let counts = [];
let isRunning = false;
let fragment = "";
/** The panel that is shown. */
let open = "run";
const tabs = [...document.querySelectorAll("[role=tab]")];
const about = await editing.ask({ ask: "about" });
at("version").textContent = about.version;

const editor = new Editor(at("editor"), editing, {
  run: () => run(),
  changed: () => {
    counts = [];
    editor.mark([]);
    lanes.forget();
    later("link", 400, keep);
  },
  checked: (diagnostics) => {
    showProblems(diagnostics);
    later("kernels", 0, learnKernels);
  },
  moved: (line) => later("moved", 150, () => follow(line)),
});

const form = new Arguments(at("arguments"), about.elements, () => {
  showCommand();
  lanes.forget();
  later("link", 400, keep);
});
const lanes = new Lanes(at("lanes"), running, () => ({ text: editor.text, words: form.words(false) }), (lines, first) => open === "lanes" && editor.mark(lines, first));

async function learnKernels() {
  const { kernels } = await editing.ask({ ask: "kernels", text: editor.text });
  form.known(kernels);
  showCommand();
}

function showCommand() {
  at("command").textContent = form.command();
}

function showProblems(diagnostics) {
  const errors = diagnostics.filter((one) => one.severity === 1).length;
  const warnings = diagnostics.length - errors;
  const some = (number, word) => (number ? [`${number} ${word}${number === 1 ? "" : "s"}`] : []);
  const [first] = diagnostics;
  const words = [...some(errors, "error"), ...some(warnings, "warning")].join(", ");
  at("problems").replaceChildren(...(first ? [
    element("strong", { class: errors ? "error" : "warning" }, words), " ",
    element("button", { class: "link", onclick: () => editor.goTo(first.range.start.line + 1, first.range.start.character + 1) }, `line ${first.range.start.line + 1}`),
    ` ${first.message}`,
  ] : [element("span", { class: "good" }, "no errors")]));
}

/** The cursor has come to a line: the profile's counts of it, and its instruction in the open panel. */
function follow({ number, text }) {
  const count = counts.find((one) => one.line === number);
  at("line").textContent = count ? describe(count) : `line ${number}`;
  const instruction = instructionOf(text);
  if (instruction && open === "explain") explain.ask(instruction);
  if (open === "meaning") showMeaning();
}

async function showMeaning() {
  const text = await editor.meaning();
  at("meaning").replaceChildren(text ? markdown(text) : element("p", { class: "faint" }, "Nothing is known of this place. Put the cursor on an instruction, a name or a number."));
}

const plain = (number) => number.toLocaleString("en-US");

function describe({ line, executions, threads, active_lanes, diverged, accesses }) {
  const kinds = Object.entries(accesses).filter(([, count]) => count > 0).map(([kind, count]) => `${kind} ${plain(count)}`);
  return [`line ${line}: ${plain(executions)} executions by warps`, `${plain(threads)} by threads`, `${active_lanes.toFixed(1)} of 32 lanes active`,
    ...(diverged ? [`${plain(diverged)} times divergent`] : []), ...(kinds.length ? [`accesses: ${kinds.join(", ")}`] : [])].join(" · ");
}

function showProfile(lines) {
  counts = lines;
  const most = Math.max(1, ...lines.map((one) => one.threads));
  const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
  editor.profile(new Map(lines.map((one) => [one.line, { text: short.format(one.threads), title: describe(one), heat: one.threads / most }])));
}

async function run() {
  if (isRunning) return;
  setRunning(true);
  select("run");
  results.say("running …");
  editor.mark([]);
  const started = performance.now();
  const answer = await running.ask({ ask: "run", text: editor.text, words: form.words() });
  setRunning(false);
  if (answer.error?.message === "stopped") return results.say("stopped");
  await results.show(answer, (performance.now() - started) / 1000);
  showProfile(answer.summary?.profile?.lines ?? []);
  const lines = answer.stopped?.diagnostics.map((one) => [one.line, "cm-fault"]) ?? [];
  for (const found of answer.summary?.findings ?? []) {
    for (const side of [found.first, found.second]) if (side) lines.push([side.line, "cm-finding"]);
  }
  editor.mark(lines);
}

function setRunning(is) {
  isRunning = is;
  at("run-button").hidden = is;
  at("stop-button").hidden = !is;
}

// The tabs of the side panel.

function select(name) {
  open = name;
  for (const tab of tabs) {
    const chosen = tab.dataset.panel === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    at(`panel-${tab.dataset.panel}`).hidden = !chosen;
  }
  if (name === "explain" || name === "meaning") follow(editor.line());
  if (name === "lanes") lanes.mark();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => select(tab.dataset.panel));
  tab.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    select(next.dataset.panel);
    next.focus();
  });
}

const stateNow = () => ({ text: editor.text, ...form.state });
/** Keeps the state in the address, so that reloading and sharing have it. */
async function keep() {
  fragment = await toFragment(stateNow());
  history.replaceState(null, "", fragment);
}

function load(state) {
  results.say("Run the kernel to see what it computes.");
  showProfile([]);
  results.views = {};
  form.set(state);
  editor.text = state.text;
}

at("examples").append(element("option", { value: "" }, "Examples"), ...EXAMPLES.map(({ name }, i) => element("option", { value: i }, name)));
at("examples").addEventListener("change", ({ target }) => {
  if (target.value !== "") load(EXAMPLES[target.value]);
  target.value = "";
});
at("run-button").addEventListener("click", run);
at("stop-button").addEventListener("click", () => running.stop());
at("format-button").addEventListener("click", async () => {
  if (!(await editor.format())) notify("A file with syntax errors is not formatted.");
});
at("share-button").addEventListener("click", async () => {
  await keep();
  try {
    await navigator.clipboard.writeText(location.href);
    notify(`The link is copied: ${plain(location.href.length)} characters, with the kernel and its arguments.`);
  } catch {
    notify("The link is in the address bar.");
  }
});
at("eval-line").addEventListener("click", () => {
  const instruction = instructionOf(editor.line().text);
  if (instruction) evaluate.take(instruction);
});
at("file").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  if (file) load({ text: await file.text(), args: [] });
  target.value = "";
});
addEventListener("hashchange", async () => {
  const state = location.hash !== fragment && (await fromFragment(location.hash));
  if (state) load(state);
});
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  }
});

function notify(text) {
  at("notice").textContent = text;
  later("notice", 5000, () => (at("notice").textContent = ""));
}

load((await fromFragment(location.hash)) ?? EXAMPLES[0]);
select("run");
document.documentElement.dataset.ready = "true";
// Where there is no secure connection, the page works without it.
navigator.serviceWorker?.register("offline.js").catch(() => {});
