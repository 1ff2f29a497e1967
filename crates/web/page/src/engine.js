// Questions to the engine, each answered by a worker, so that the page never waits.

let program;

/** The compiled program, which all workers share. */
function compiled() {
  program ??= WebAssembly.compileStreaming(fetch(new URL("ptxvm.wasm", import.meta.url))).catch(async () => {
    // A server that does not know the type of the file.
    const response = await fetch(new URL("ptxvm.wasm", import.meta.url));
    return WebAssembly.compile(await response.arrayBuffer());
  });
  return program;
}

/** A worker that answers questions in their order. */
export class Engine {
  #worker;
  #ready;
  #wake;
  #waiting = new Map();
  #next = 1;
  /** Hears that what the engine held is forgotten. */
  restarted = () => {};

  constructor() {
    this.#start();
  }

  #start() {
    const worker = new Worker(new URL("worker.js", import.meta.url));
    this.#worker = worker;
    this.#ready = new Promise((resolve) => {
      this.#wake = resolve;
      worker.onmessage = ({ data }) => {
        if (data.ready) return resolve();
        const waiting = this.#waiting.get(data.number);
        this.#waiting.delete(data.number);
        if (!data.trapped) return waiting?.(data.answer);
        waiting?.({ error: { message: `ptxvm itself failed: ${data.trapped}`, help: null } });
        this.stop();
      };
    });
    compiled().then((program) => worker.postMessage({ program }));
  }

  /** The answer to a question; it has `error` if there is none. */
  async ask(question) {
    const worker = this.#worker;
    await this.#ready;
    if (worker !== this.#worker) return { error: { message: "stopped", help: null } };
    return new Promise((resolve) => {
      const number = this.#next++;
      this.#waiting.set(number, resolve);
      worker.postMessage({ number, question });
    });
  }

  /** Ends what runs, and begins anew: launches and documents are forgotten. */
  stop() {
    this.#worker.terminate();
    for (const waiting of this.#waiting.values()) waiting({ error: { message: "stopped", help: null } });
    this.#waiting.clear();
    // Who waits for the old worker asks it in vain.
    this.#wake();
    this.#start();
    this.restarted();
  }
}
