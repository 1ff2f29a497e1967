// The threads of a block as a grid, through a recorded run: who executes, who waits, and what a register holds.
import { choice, element, field } from "./dom.js";
import { heat } from "./results.js";

/** How the bits of a register may be read, besides its own type. */
const TYPES = ["", "u32", "s32", "f32", "u64", "s64", "f64", "u16", "f16", "bf16"];
const WARP = 32;

/** The most ranges of lanes that are written out. */
const MOST_PARTS = 6;

/** The lanes of a mask, as ranges: `0-3,7`. */
export function lanesOf(mask) {
  const parts = [];
  for (let lane = 0; lane < WARP; lane++) {
    if (!((mask >>> lane) & 1)) continue;
    let end = lane;
    while (end + 1 < WARP && (mask >>> (end + 1)) & 1) end += 1;
    parts.push(end > lane ? `${lane}-${end}` : `${lane}`);
    lane = end;
  }
  const all = parts.length > MOST_PARTS ? `${parts.slice(0, MOST_PARTS - 2).join(",")},…,${parts.at(-1)}` : parts.join(",");
  return parts.length > MOST_PARTS ? `${all} (${mask.toString(2).replaceAll("0", "").length} lanes)` : all;
}

export class Lanes {
  #engine;
  #launch;
  #show;
  #view = { block: "0", register: "", ty: "" };
  #recording = null;
  #time = 0;
  #asked = 0;
  #parts = {};
  #timer;
  #isRecording = false;

  /** `launch` gives the text and the words of a launch, `show` marks lines of the source. */
  constructor(parent, engine, launch, show) {
    [this.#engine, this.#launch, this.#show] = [engine, launch, show];
    const button = (label, title, step) => element("button", { title, "aria-label": title, onclick: () => step() }, label);
    const parts = (this.#parts = {
      record: element("button", { class: "primary", onclick: () => (this.#isRecording ? this.#engine.stop() : this.record()) }, "Record"),
      message: element("p", { class: "faint", role: "status" }, "Records a block of the launch, turn by turn: an instruction of a warp is a turn."),
      register: element("span", {}), types: element("span", {}),
      slider: element("input", { type: "range", min: 0, value: 0, "aria-label": "turn", oninput: (event) => this.#go(Number(event.target.value)) }),
      turn: element("p", { class: "turn", "aria-live": "polite" }),
      grid: element("div", { class: "lanes", role: "group", "aria-label": "threads of the block, a warp in each row" }),
      apart: element("div", {}),
      legend: element("p", { class: "legend" }),
    });
    parts.play = button("Play", "play", () => this.#play());
    this.#parts.body = element("div", { hidden: true },
      element("div", { class: "steps" }, button("|◀", "to the beginning", () => this.#go(0)), button("◀", "a turn back", () => this.#go(this.#time - 1)), parts.play,
        button("▶", "a turn forward", () => this.#go(this.#time + 1)), button("▶|", "to the end", () => this.#go(Infinity)), parts.slider),
      element("div", { class: "controls" }, parts.register, parts.types), parts.turn, parts.grid, parts.legend, parts.apart);
    this.#parts.body.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || event.target === parts.slider || event.target.tagName === "SELECT") return;
      event.preventDefault();
      this.#go(this.#time + step);
    });
    parent.append(element("div", { class: "ask" },
      element("label", { class: "labelled" }, element("span", {}, "block of the grid"), field("block of the grid", "0", (value) => (this.#view.block = value), { size: 6 })),
      parts.record), parts.message, this.#parts.body);
  }

  /** The text or the launch has changed: the recording is of another one. */
  forget() {
    if (!this.#recording) return;
    this.#stop();
    this.#recording = null;
    this.#parts.body.hidden = true;
    this.#parts.message.textContent = "The kernel or its arguments have changed. Record again.";
  }

  /** Marks the line of the present turn again. */
  mark() {
    if (this.#recording) this.#go(this.#time);
  }

  async record() {
    this.#stop();
    const parts = this.#parts;
    this.#isRecording = true;
    parts.record.textContent = "Stop";
    parts.message.textContent = "recording …";
    const block = Number(this.#view.block) || 0;
    const answer = await this.#engine.ask({ ask: "record", ...this.#launch(), block });
    this.#isRecording = false;
    parts.record.textContent = "Record";
    if (answer.error) {
      parts.body.hidden = true;
      this.#recording = null;
      parts.message.textContent = answer.error.message;
      return;
    }
    this.#recording = answer;
    parts.message.textContent = `${answer.turns.toLocaleString("en-US")} turns of ${answer.threads} threads${answer.cut ? `: ${answer.cut}` : ""}`;
    parts.slider.max = answer.turns;
    parts.body.hidden = false;
    const names = answer.registers.map(({ name, type }) => [name, `${name}  .${type}`]);
    if (!answer.registers.some(({ name }) => name === this.#view.register)) this.#view.register = "";
    parts.register.replaceChildren(choice("register", [["", "states"], ...names], this.#view.register, (register) => {
      this.#view.register = register;
      this.#go(this.#time);
    }));
    parts.types.replaceChildren(choice("read as", TYPES.map((type) => [type, type ? `as ${type}` : "own type"]), this.#view.ty, (ty) => {
      this.#view.ty = ty;
      this.#go(this.#time);
    }));
    parts.grid.replaceChildren(...Array.from({ length: Math.ceil(answer.threads / WARP) }, (_, warp) =>
      element("div", { class: "warp", style: `--first:${warp * WARP}` }, element("span", { class: "number" }, String(warp * WARP)),
        Array.from({ length: Math.min(WARP, answer.threads - warp * WARP) }, (_, lane) => element("span", { class: "lane", "data-thread": warp * WARP + lane })))));
    await this.#go(0);
  }

  #stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#parts.play.textContent = "Play";
  }

  #play() {
    if (this.#timer) return this.#stop();
    this.#parts.play.textContent = "Pause";
    if (this.#time >= this.#recording.turns) this.#time = 0;
    this.#timer = setInterval(() => (this.#time >= this.#recording.turns ? this.#stop() : this.#go(this.#time + 1)), 150);
  }

  async #go(time) {
    const recording = this.#recording;
    this.#time = Math.min(Math.max(time, 0), recording.turns);
    const asked = ++this.#asked;
    const moment = await this.#engine.ask({ ask: "moment", time: this.#time, register: this.#view.register || null, ty: this.#view.ty || null });
    if (asked !== this.#asked || recording !== this.#recording || moment.error) return;
    this.#paint(moment);
  }

  #paint({ time, turn, states, lines, apart, values, shades }) {
    const parts = this.#parts;
    parts.slider.value = time;
    parts.turn.replaceChildren(element("strong", {}, `turn ${time} of ${this.#recording.turns}`),
      turn ? `: lanes ${lanesOf(turn.lanes)} of warp ${turn.warp} execute line ${turn.line}` : ": the end");
    const active = (thread) => turn && Math.floor(thread / WARP) === turn.warp && (turn.lanes >>> thread % WARP) & 1;
    for (const cell of parts.grid.querySelectorAll(".lane")) {
      const thread = Number(cell.dataset.thread);
      const state = active(thread) ? "active" : states[thread];
      const value = values ? ` ${this.#view.register} = ${values[thread]}` : "";
      cell.className = `lane ${state.replaceAll(" ", "-")}${values ? " valued" : ""}`;
      cell.title = `thread ${thread}: ${state}, line ${lines[thread]}${value}`;
      cell.style.background = values ? `rgb(${heat(shades[thread]).join(" ")})` : "";
    }
    const kinds = [...new Set(states.map((state, thread) => (active(thread) ? "active" : state)))];
    const least = values && [...new Set(shades)].length > 1 ? [values[shades.indexOf(0)], values[shades.indexOf(255)]] : values?.slice(0, 1);
    parts.legend.replaceChildren(...(values
      ? [element("span", { class: "scale" }), least.length > 1 ? ` ${least[0]} to ${least[1]}` : ` all ${least[0]}`, element("span", { class: "faint" }, "; framed: executing")]
      : kinds.map((kind) => element("span", { class: "key" }, element("span", { class: `lane ${kind.replaceAll(" ", "-")}` }), ` ${kind}`))));
    const places = new Map();
    states.forEach((state, thread) => state !== "ended" && lines[thread] && places.set(lines[thread], (places.get(lines[thread]) ?? 0) + 1));
    const list = apart.map(({ warp, line, ways }) => element("li", {}, `warp ${warp}: line ${line} sent lanes ${ways.filter(Boolean).map(lanesOf).join(" and ")} different ways`));
    parts.apart.replaceChildren(...(list.length ? [element("h3", {}, "apart"), element("ul", {}, list)] : []));
    const others = [...places.keys()].filter((line) => line !== turn?.line).map((line) => [line, "cm-place"]);
    this.#show(turn ? [[turn.line, "cm-turn"], ...others] : others, turn?.line);
  }
}
