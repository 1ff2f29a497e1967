// The language server, which runs in the page's engine: its messages are those of the Language Server Protocol.

const URI = "file:///kernel.ptx";

export class Server {
  #engine;
  #next = 1;
  #version = 1;
  #started;
  #published;

  /** `published` gets the diagnostics of the newest text. */
  constructor(engine, published) {
    this.#engine = engine;
    this.#published = published;
    this.#started = this.#start();
    // The next change brings the text again.
    engine.restarted = () => (this.#started = this.#start());
  }

  async #start() {
    const { result } = await this.#send("initialize", { capabilities: {} });
    if (!result) return;
    this.legend = result.capabilities.semanticTokensProvider.legend.tokenTypes;
    await this.#send("textDocument/didOpen", {
      textDocument: { uri: URI, languageId: "ptx", version: this.#version, text: "" },
    }, true);
  }

  async #send(method, params, isNote = false) {
    const message = { jsonrpc: "2.0", method, params };
    if (!isNote) message.id = this.#next++;
    const { messages = [] } = await this.#engine.ask({ ask: "editor", message });
    let answer = {};
    for (const said of messages) {
      if (said.method === "textDocument/publishDiagnostics") {
        if (said.params.version === this.#version) this.#published(said.params.diagnostics);
      } else if (said.id === message.id) answer = said;
    }
    return answer;
  }

  /** The text has changed. */
  async change(text) {
    const version = ++this.#version;
    await this.#started;
    if (version !== this.#version) return;
    await this.#send("textDocument/didChange", {
      textDocument: { uri: URI, version },
      contentChanges: [{ text }],
    }, true);
  }

  /** The answer to a request about the text, or null. */
  async request(method, params = {}) {
    await this.#started;
    const answer = await this.#send(`textDocument/${method}`, { textDocument: { uri: URI }, ...params });
    return answer.result ?? null;
  }

  /** The changes of a quick fix to the text. */
  edits(action) {
    return action.edit?.changes?.[URI] ?? action.edit?.documentChanges?.flatMap((change) => change.edits) ?? [];
  }
}
