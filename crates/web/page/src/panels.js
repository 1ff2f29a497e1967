// The side panels that ask: what an instruction is (`explain`), and what it returns (`eval`).
import { element } from "./dom.js";
import { markdown } from "./markdown.js";

/** The instruction of a line: its name with modifiers, behind labels and a guard. */
export function instructionOf(line) {
  const code = line.replace(/\/\/.*/, "");
  const found = /^\s*(?:[\w$]+:\s*)*(?:@!?%?[\w$]+(?:\[[^\]]*\])?\s+)?([a-z][\w]*(?:\.[\w:]+)*)\b/.exec(code);
  return found && !code.trim().startsWith(".") ? found[1] : null;
}

export class Explain {
  #engine;
  #page;
  #input;
  #asked = 0;

  constructor(parent, engine) {
    this.#engine = engine;
    this.#input = element("input", { type: "search", "aria-label": "instruction, modifier or code to explain", placeholder: "add.f32, .rn, out-of-bounds …", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
    this.#page = element("div", { class: "page", tabindex: "0", "aria-label": "explanation" });
    const form = element("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      this.ask(this.#input.value);
    } }, this.#input, element("button", {}, "Explain"));
    parent.append(form, element("p", { class: "faint" }, "The instruction at the cursor is explained as the cursor moves."), this.#page);
  }

  /** Shows the page of a name. */
  async ask(name) {
    const asked = ++this.#asked;
    if (!name.trim()) return;
    const answer = await this.#engine.ask({ ask: "explain", name });
    if (asked !== this.#asked) return;
    this.#input.value = name;
    this.#page.scrollTop = 0;
    this.#page.replaceChildren(answer.error
      ? element("p", { class: "message error" }, [answer.error.message, answer.error.help].filter(Boolean).join(" — "))
      : markdown(answer.page));
  }
}

export class Evaluate {
  #engine;
  #input;
  #shown;

  constructor(parent, engine) {
    this.#engine = engine;
    this.#input = element("input", { type: "search", "aria-label": "instruction and operands", value: "setp.lt.and.f16x2 0x3c004000 0x40003c00 true", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
    this.#shown = element("pre", { class: "evaluated", "aria-live": "polite" });
    const form = element("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      this.ask();
    } }, this.#input, element("button", {}, "Evaluate"));
    parent.append(form, element("p", { class: "faint" }, "An instruction, then its operands: bits 0x3c00, numbers, true and false; lanes of a vector as 1,2."), this.#shown);
  }

  /** Takes an instruction, whose operands are yet to be written. */
  take(instruction) {
    this.#input.value = `${instruction} `;
    this.#input.focus();
    this.#shown.textContent = "";
  }

  /** Shows the result. */
  async ask(text = this.#input.value) {
    this.#input.value = text;
    const [instruction, ...operands] = text.trim().split(/\s+/);
    const answer = await this.#engine.ask({ ask: "eval", instruction, operands });
    this.#shown.classList.toggle("error", Boolean(answer.error));
    this.#shown.textContent = answer.error ? [answer.error.message, answer.error.help].filter(Boolean).join("\n") : answer.text;
  }
}
