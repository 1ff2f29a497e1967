// The form of a launch. What it makes are the words of `ptxvm run`, so that a link, the form and the command say the same.
import { choice, element, field } from "./dom.js";

/** What an array holds, as the command writes it behind `=`. */
const FILLS = [
  ["", "zeros"], ["iota", "0, 1, 2, …"], ["random", "random, seed"], ["normal", "normal, seed"], ["number", "all equal"],
  ["list", "these"], ["undef", "nothing yet"],
];

/** An argument of the command as what the form shows. */
function parse(spec) {
  const array = /^(\w+)\[([^\]]*)\](?:=(.*))?$/s.exec(spec);
  if (!array) return { kind: /^[{@]|[(:]/.test(spec) ? "other" : "number", text: spec };
  const [, type, shape, fill = ""] = array;
  const seeded = /^(random|normal)(?:\((\d*)\))?$/.exec(fill);
  if (seeded) return { kind: "array", type, shape, fill: seeded[1], value: seeded[2] ?? "0" };
  if (["", "iota", "undef"].includes(fill)) return { kind: "array", type, shape, fill, value: "" };
  return { kind: "array", type, shape, fill: fill.includes(",") ? "list" : "number", value: fill };
}

function print({ kind, text, type, shape, fill, value }) {
  if (kind !== "array") return text;
  const seeded = fill === "random" || fill === "normal";
  const held = seeded ? `${fill}(${value || 0})` : fill === "number" || fill === "list" ? value.trim() : fill;
  return `${type}[${shape.trim()}]${held && `=${held}`}`;
}

/** What a parameter gets before anybody has said anything. */
function first(param) {
  if (param.by_value) return `bytes:${"00".repeat(param.bytes)}`;
  return param.address && param.bytes === 8 ? "f32[64]=iota" : "1";
}

/** Whether an argument can be one for the parameter. */
const fits = (spec, param) => spec !== undefined && (parse(spec).kind !== "array" || param.address);

export class Arguments {
  #parent;
  #changed;
  #types;
  kernels = [];
  state = { entry: null, grid: "1", block: "1", shared: "0", tool: false, args: [] };

  constructor(parent, types, changed) {
    [this.#parent, this.#types, this.#changed] = [parent, types, changed];
  }

  get kernel() {
    return this.kernels.find((kernel) => kernel.name === this.state.entry) ?? this.kernels[0];
  }

  /** The launch that a link or an example has. */
  set(state) {
    const { entry = null, grid = "1", block = "1", shared = "0", tool = false, args = [] } = state;
    this.state = { entry, grid, block, shared, tool, args: [...args] };
    this.#show();
  }

  /** The kernels of the text, or null while it has errors: then the form stays as it is. */
  known(kernels) {
    if (!kernels) return;
    const before = JSON.stringify([this.kernels, this.state.args.length]);
    this.kernels = kernels;
    const kernel = this.kernel;
    if (kernel) {
      this.state.args = kernel.params.map((param, i) => (fits(this.state.args[i], param) ? this.state.args[i] : first(param)));
      if (kernel.block && this.state.block === "1") this.state.block = kernel.block.join(",");
    }
    if (before !== JSON.stringify([this.kernels, this.state.args.length]) || !this.#parent.hasChildNodes()) this.#show();
  }

  /** The words behind `ptxvm run FILE`; without what watches the launch, if it is not `observed`. */
  words(observed = true) {
    const { grid, block, shared, tool, args } = this.state;
    const words = ["--grid", grid.trim(), "--block", block.trim()];
    if (this.kernels.length > 1 && this.kernel) words.unshift("--entry", this.kernel.name);
    if (shared.trim() !== "0") words.push("--shared", shared.trim());
    for (const arg of args) words.push("--arg", arg);
    return [...words, ...(observed ? (tool ? ["--tool", "all"] : ["--profile"]) : [])];
  }

  /** The same as a line for a shell. */
  command() {
    const quoted = (word) => (/^[\w.,:=@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
    return `ptxvm run kernel.ptx ${this.words().map(quoted).join(" ")}`;
  }

  #set(key, value, again = false) {
    this.state[key] = value;
    if (again) this.#show();
    this.#changed();
  }

  #show() {
    const { state } = this;
    const kernel = this.kernel;
    const labelled = (label, ...inputs) => element("label", { class: "labelled" }, element("span", {}, label), inputs);
    const launch = element("div", { class: "launch" },
      this.kernels.length > 1 && labelled("kernel", choice("kernel", this.kernels.map(({ name, short }) => [name, short]), kernel?.name, (name) => {
        this.state.entry = name;
        this.known(this.kernels);
        this.#set("entry", name, true);
      })),
      labelled("grid", field("grid", state.grid, (value) => this.#set("grid", value), { size: 9 })),
      labelled("block", field("block", state.block, (value) => this.#set("block", value), { size: 9 })),
      labelled("shared bytes", field("shared bytes", state.shared, (value) => this.#set("shared", value), { size: 6 })),
      element("label", { class: "check", title: "Finds races, uninitialized values, misused barriers and leaks, instead of the profile" },
        element("input", { type: "checkbox", checked: state.tool, onchange: (event) => this.#set("tool", event.target.checked) }), "tools"));
    const rows = (kernel?.params ?? []).map((param, i) => this.#row(param, i));
    const empty = kernel ? [] : [element("p", { class: "faint" }, "There is no kernel (.entry) without errors yet.")];
    this.#parent.replaceChildren(launch, element("div", { class: "params" }, rows), ...empty);
  }

  #row(param, i) {
    const value = parse(this.state.args[i] ?? first(param));
    const change = (changes, again = false) => {
      Object.assign(value, changes);
      this.state.args[i] = print(value);
      if (again) this.#show();
      this.#changed();
    };
    const kinds = [...(param.address ? [["array", "array"]] : []), ...(param.by_value ? [] : [["number", "number"]]), ["other", "other"]];
    const became = (kind) => {
      const fresh = { array: "f32[64]", number: "0", other: param.by_value ? first(param) : this.state.args[i] }[kind];
      change({ ...parse(fresh), kind }, true);
    };
    const name = `argument ${i}, ${param.name}`;
    const parts = [element("span", { class: "name", title: `argument ${i}: .${param.type}${param.by_value ? `, ${param.bytes} bytes` : ""}` },
      param.name, element("small", {}, ` .${param.type}`)), choice(`${name}: kind`, kinds, value.kind, became)];
    if (value.kind === "array") {
      parts.push(
        choice(`${name}: type of elements`, this.#types, value.type, (type) => change({ type })),
        field(`${name}: shape`, value.shape, (shape) => change({ shape }), { size: 7, title: "extents: 1024, or rows x columns: 64x64" }),
        choice(`${name}: contents`, FILLS, value.fill, (fill) => change({ fill, value: { random: "0", normal: "0", number: "1", list: "1,2,3" }[fill] ?? "" }, true)));
      if (["random", "normal", "number", "list"].includes(value.fill)) {
        parts.push(field(`${name}: value`, value.value, (text) => change({ value: text }), { class: value.fill === "list" ? "long" : "", size: 6 }));
      }
    } else {
      parts.push(field(`${name}: value`, value.text, (text) => change({ text }), { class: "long", title: "as behind --arg: 42, -1.5, 0x3c00, bytes:0011, {1, 2.5}, texture(f32[8x8]=iota) …" }));
    }
    return element("div", { class: value.kind === "number" ? "param short" : "param" }, parts);
  }
}
