// The editor: its colours, errors, meanings and completions come from the language server.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration, EditorView, GutterMarker, drawSelection, gutter, highlightActiveLine, highlightActiveLineGutter, hoverTooltip,
  keymap, lineNumbers,
} from "@codemirror/view";
import { element } from "./dom.js";
import { markdown } from "./markdown.js";
import { Server } from "./server.js";

/** Milliseconds without a keystroke after which the text is checked. */
const PAUSE = 120;

const setTokens = StateEffect.define();
const setMarks = StateEffect.define();
const setProfile = StateEffect.define();

/** Decorations that an effect replaces, and that move with the text. */
const decorations = (effect) => StateField.define({
  create: () => Decoration.none,
  update(value, transaction) {
    value = value.map(transaction.changes);
    for (const one of transaction.effects) if (one.is(effect)) value = one.value;
    return value;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** The counts of each line: `Map` from line to `{text, title, heat}`. */
const profile = StateField.define({
  create: () => new Map(),
  update(value, transaction) {
    if (transaction.docChanged) value = new Map();
    for (const one of transaction.effects) if (one.is(setProfile)) value = one.value;
    return value;
  },
});

class Count extends GutterMarker {
  constructor(count) {
    super();
    this.count = count;
  }
  eq(other) {
    return other.count.title === this.count.title;
  }
  toDOM() {
    const { text, title, heat } = this.count;
    return element("span", { class: "count", style: `--heat:${heat.toFixed(3)}`, title }, text);
  }
}

const profileGutter = gutter({
  class: "cm-profile",
  lineMarker(view, block) {
    const count = view.state.field(profile).get(view.state.doc.lineAt(block.from).number);
    return count ? new Count(count) : null;
  },
  lineMarkerChange: (update) => update.startState.field(profile) !== update.state.field(profile),
});

const offset = (doc, { line, character }) => {
  if (line >= doc.lines) return doc.length;
  const at = doc.line(line + 1);
  return Math.min(at.from + character, at.to);
};
const position = (doc, at) => {
  const line = doc.lineAt(at);
  return { line: line.number - 1, character: at - line.from };
};

export class Editor {
  /** `changed` hears of each change, `checked` of the diagnostics after it, `moved` of the cursor's line. */
  constructor(parent, engine, { changed, checked, moved, run }) {
    this.checked = checked;
    this.server = new Server(engine, (diagnostics) => this.#show(diagnostics));
    let pause;
    const listener = EditorView.updateListener.of((update) => {
      if (update.docChanged) {
        clearTimeout(pause);
        const wait = update.transactions.some((one) => one.isUserEvent("input") || one.isUserEvent("delete"));
        pause = setTimeout(() => this.#check(), wait ? PAUSE : 0);
        changed();
      }
      if (update.selectionSet || update.docChanged) moved(this.line());
    });
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          lineNumbers(), profileGutter, profile, lintGutter(), history(), drawSelection(), highlightActiveLine(),
          highlightActiveLineGutter(), highlightSelectionMatches(), search({ top: true }), indentUnit.of("    "),
          EditorState.tabSize.of(4), decorations(setTokens), decorations(setMarks), listener,
          autocompletion({ override: [(context) => this.#complete(context)] }),
          hoverTooltip((view, at) => this.#hover(at), { hoverTime: 350 }),
          keymap.of([
            { key: "Mod-Enter", run: () => (run(), true) },
            { key: "Shift-Alt-f", run: () => (this.format(), true) },
            ...completionKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap, indentWithTab,
          ]),
          EditorView.contentAttributes.of({ "aria-label": "PTX", spellcheck: "false" }),
        ],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  }

  /** The line of the cursor: `{number, text}`. */
  line() {
    const { number, text } = this.view.state.doc.lineAt(this.view.state.selection.main.head);
    return { number, text };
  }

  async #check() {
    const doc = this.view.state.doc;
    await this.server.change(doc.toString());
    const tokens = await this.server.request("semanticTokens/full");
    if (doc !== this.view.state.doc || !tokens) return;
    const builder = new RangeSetBuilder();
    let [line, character] = [0, 0];
    for (let i = 0; i + 4 < tokens.data.length; i += 5) {
      const [down, right, length, type] = tokens.data.slice(i, i + 4);
      [line, character] = [line + down, down ? right : character + right];
      const from = offset(doc, { line, character });
      if (length > 0 && from + length <= doc.length) {
        builder.add(from, from + length, Decoration.mark({ class: `tok-${this.server.legend[type]}` }));
      }
    }
    this.view.dispatch({ effects: setTokens.of(builder.finish()) });
  }

  async #show(diagnostics) {
    const doc = this.view.state.doc;
    this.checked(diagnostics);
    const shown = diagnostics.map((one) => {
      const [from, to] = [offset(doc, one.range.start), offset(doc, one.range.end)];
      return { from, to: Math.max(to, from), severity: one.severity === 1 ? "error" : "warning", message: one.message, actions: [] };
    });
    this.view.dispatch(setDiagnostics(this.view.state, shown));
    if (!diagnostics.length) return;
    const whole = { start: { line: 0, character: 0 }, end: position(doc, doc.length) };
    const actions = (await this.server.request("codeAction", { range: whole, context: { diagnostics } })) ?? [];
    if (doc !== this.view.state.doc || !actions.length) return;
    for (const [index, one] of diagnostics.entries()) {
      const same = (range) => JSON.stringify(range) === JSON.stringify(one.range);
      const fixes = actions.filter((action) => action.diagnostics?.some((of) => same(of.range) && of.message === one.message));
      shown[index].actions = fixes.map((action) => ({ name: action.title, apply: () => this.#apply(action) }));
    }
    this.view.dispatch(setDiagnostics(this.view.state, shown));
  }

  #changes(edits) {
    const doc = this.view.state.doc;
    return edits.map(({ range, newText }) => ({ from: offset(doc, range.start), to: offset(doc, range.end), insert: newText }));
  }

  #apply(action) {
    this.view.dispatch({ changes: this.#changes(this.server.edits(action)) });
  }

  /** Lays the text out. Returns whether that was possible. */
  async format() {
    const edits = await this.server.request("formatting", { options: { tabSize: 4, insertSpaces: true } });
    if (edits?.length) this.view.dispatch({ changes: this.#changes(edits) });
    return edits != null;
  }

  async #hover(at) {
    const found = await this.server.request("hover", { position: position(this.view.state.doc, at) });
    if (!found) return null;
    const doc = this.view.state.doc;
    const range = found.range ?? { start: position(doc, at), end: position(doc, at) };
    const dom = element("div", { class: "hover" }, markdown(found.contents.value));
    return { pos: offset(doc, range.start), end: offset(doc, range.end), above: true, create: () => ({ dom }) };
  }

  async #complete(context) {
    const before = context.matchBefore(/[%.@$]?[\w$]*/);
    if (!context.explicit && (!before || before.from === before.to)) return null;
    await this.server.change(context.state.doc.toString());
    const found = await this.server.request("completion", { position: position(context.state.doc, context.pos) });
    const items = Array.isArray(found) ? found : found?.items ?? [];
    if (!items.length) return null;
    const first = items[0].textEdit?.range?.start;
    const options = items.map((item) => ({
      label: item.label,
      detail: item.detail ?? item.labelDetails?.description,
      info: typeof item.documentation === "string" ? item.documentation : item.documentation?.value,
      apply: item.textEdit?.newText ?? item.insertText ?? item.label,
    }));
    const word = context.matchBefore(/[\w$]*/);
    const from = first ? offset(context.state.doc, first) : options[0].label.match(/^[%.@$]/) ? before.from : word?.from ?? context.pos;
    return { from, options, filter: true };
  }

  /** What the server says about the cursor's place. */
  async meaning() {
    const { doc, selection } = this.view.state;
    const found = await this.server.request("hover", { position: position(doc, selection.main.head) });
    return found?.contents.value ?? null;
  }

  /** Marks lines: `[[line, class]]`. Scrolls to the topmost, or to `first`. */
  mark(lines, first) {
    const doc = this.view.state.doc;
    const known = lines.filter(([line]) => line >= 1 && line <= doc.lines).sort(([a], [b]) => a - b);
    const builder = new RangeSetBuilder();
    for (const [line, name] of known) builder.add(doc.line(line).from, doc.line(line).from, Decoration.line({ class: name }));
    const effects = [setMarks.of(builder.finish())];
    const shown = first ?? known[0]?.[0];
    if (shown && known.length) effects.push(EditorView.scrollIntoView(doc.line(Math.min(shown, doc.lines)).from, { y: "nearest", yMargin: 60 }));
    this.view.dispatch({ effects });
  }

  /** Puts the cursor at a place. */
  goTo(line, column = 1) {
    const doc = this.view.state.doc;
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
    this.view.dispatch({ selection: { anchor: Math.min(at.from + column - 1, at.to) }, scrollIntoView: true });
    this.view.focus();
  }

  /** Shows the counts of lines. */
  profile(counts) {
    this.view.dispatch({ effects: setProfile.of(counts) });
  }
}
