// What a launch left: arrays as numbers, bits or a picture, what it printed, what tools found, why it stopped.
import { choice, element, field } from "./dom.js";

/** Elements that are shown at first, and that are added by "more". */
const SOME = 256;

const grouped = (number) => number.toLocaleString("en-US");

/** Stops of the colours of a heat map, from the least value to the greatest. */
const HEAT = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/** The colour of a shade from 0 to 255. */
export function heat(shade) {
  const at = (shade / 255) * (HEAT.length - 1);
  const low = Math.min(Math.floor(at), HEAT.length - 2);
  return HEAT[low].map((from, i) => Math.round(from + (HEAT[low + 1][i] - from) * (at - low)));
}

export class Results {
  #parent;
  #engine;
  #goTo;
  /** How each place is shown, so that the next launch is shown the same way. */
  views = {};

  constructor(parent, engine, goTo) {
    [this.#parent, this.#engine, this.#goTo] = [parent, engine, goTo];
  }

  /** Shows words in place of results. */
  say(text, kind = "faint") {
    this.#parent.replaceChildren(element("p", { class: kind, role: "status" }, text));
  }

  /** Shows the answer to a launch. */
  async show(answer, seconds) {
    const parts = [];
    if (answer.error) {
      parts.push(element("pre", { class: "message error" }, [answer.error.message, answer.error.help].filter(Boolean).join("\n\n")));
      this.#parent.replaceChildren(...parts);
      return;
    }
    const { summary, stopped, findings, printed, arrays } = answer;
    if (stopped) {
      const [first] = stopped.diagnostics;
      const place = first && element("button", { class: "link", onclick: () => this.#goTo(first.line, first.column) }, `line ${first.line}`);
      parts.push(element("div", { class: "message error" }, element("strong", {}, stopped.fault ? "The kernel did not end" : "The kernel did not run"), place ? [": ", place] : "",
        element("pre", {}, stopped.text.trimEnd())));
    } else {
      const instructions = grouped(summary.thread_instructions);
      parts.push(element("p", { class: "ran", role: "status" },
        `${grouped(summary.threads)} threads, ${instructions} thread-instructions, ${seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))} ms` : `${seconds.toFixed(2)} s`}`));
    }
    if (summary?.findings) {
      if (!findings.length) parts.push(element("p", { class: "good" }, "The tools found nothing: no race, no uninitialized value, no misused barrier, no leak."));
      findings.forEach((text, i) => {
        const line = summary.findings[i]?.first?.line;
        parts.push(element("div", { class: "message warning" },
          line && element("button", { class: "link", onclick: () => this.#goTo(line) }, `line ${line}`), element("pre", {}, text.trimEnd())));
      });
    }
    if (printed) parts.push(element("h3", {}, "printed"), element("pre", { class: "printed", id: "printed" }, printed));
    this.#parent.replaceChildren(...parts);
    await Promise.all(arrays.map((array, index) => {
      const box = element("section", { class: "array", "data-place": array.place });
      this.#parent.append(box);
      return this.#array(box, array, index);
    }));
  }

  async #array(box, array, index) {
    const { shape, elements, place, name, type } = array;
    const isPicture = shape.length === 2 && shape[0] > 3 && shape[1] > 3 || shape.length === 3 && [3, 4].includes(shape[2]) && ["u8", "bytes"].includes(type);
    const view = (this.views[place] ??= { kind: isPicture ? "picture" : "numbers", colours: "heat", width: "" });
    const body = element("div", { class: "body" });
    const kinds = ["numbers", "bits", "picture"].map((kind) => element("button", {
      "aria-pressed": String(view.kind === kind), onclick: () => {
        view.kind = kind;
        this.#array(box, array, index);
      },
    }, kind));
    box.replaceChildren(element("header", {}, element("h3", {}, name, element("small", {}, ` ${type}[${shape.join("x")}]`)), element("div", { class: "kinds", role: "group", "aria-label": `how to show ${name}` }, kinds)), body);
    if (view.kind === "picture") await this.#picture(body, array, index, view);
    else await this.#table(body, array, index, view.kind === "bits", Math.min(SOME, elements));
  }

  async #table(body, { shape, elements }, index, bits, to) {
    const answer = await this.#engine.ask({ ask: "elements", array: index, from: 0, to });
    if (answer.error) return body.replaceChildren(answer.error.message);
    const values = bits ? answer.bits : answer.values;
    const inner = shape.at(-1) ?? 1;
    const columns = shape.length > 1 && inner <= 16 ? inner : bits ? 4 : 8;
    const rows = [];
    for (let i = 0; i < values.length; i += columns) {
      const cells = values.slice(i, i + columns).map((value) => element("td", {}, value));
      rows.push(element("tr", {}, element("th", { scope: "row" }, String(i)), cells));
    }
    const more = elements > values.length && element("button", { onclick: () => this.#table(body, { shape, elements }, index, bits, Math.min(elements, 4096, values.length * 4)) },
      values.length < Math.min(elements, 4096) ? `more of ${grouped(elements)}` : `the first ${grouped(values.length)} of ${grouped(elements)}`);
    if (more && values.length >= 4096) more.disabled = true;
    body.replaceChildren(element("div", { class: "wide" }, element("table", { class: "values" }, element("tbody", {}, rows))), more || "");
  }

  async #picture(body, { shape }, index, view) {
    const width = shape.length === 1 ? Number(view.width) || Math.max(1, Math.round(Math.sqrt(shape[0]))) : null;
    const answer = await this.#engine.ask({ ask: "picture", array: index, width });
    const again = (changes) => {
      Object.assign(view, changes);
      this.#picture(body, { shape }, index, view);
    };
    const colours = shape.length < 3 && choice("colours", [["heat", "heat map"], ["grey", "grey"]], view.colours, (colours) => again({ colours }));
    const wide = shape.length === 1 && element("label", { class: "labelled" }, element("span", {}, "width"), field("width", String(width), () => {}, { size: 5, onchange: (event) => again({ width: event.target.value }) }));
    const controls = element("div", { class: "controls" }, colours || null, wide || null);
    if (answer.error) return body.replaceChildren(controls, element("p", { class: "faint" }, answer.error.message));
    const picture = await createImageBitmap(new Blob([new Uint8Array(answer.png)], { type: "image/png" }));
    const canvas = element("canvas", { width: picture.width, height: picture.height, role: "img", "aria-label": "the array as a picture" });
    canvas.style.setProperty("--scale", String(Math.max(1, Math.floor(480 / picture.width))));
    canvas.style.setProperty("--pixels", String(picture.width));
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    if (shape.length < 3 && view.colours === "heat") {
      const image = context.getImageData(0, 0, picture.width, picture.height);
      const palette = Array.from({ length: 256 }, (_, shade) => heat(shade));
      for (let i = 0; i < image.data.length; i += 4) image.data.set(palette[image.data[i]], i);
      context.putImageData(image, 0, 0);
    }
    body.replaceChildren(controls, canvas);
  }
}
