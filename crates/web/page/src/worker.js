// The engine in a thread of its own. Its first message is the compiled program; each further one is a question with a number.
let exports;

function ask(question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  const room = exports.room(bytes.length);
  new Uint8Array(exports.memory.buffer, room, bytes.length).set(bytes);
  const answer = exports.answer();
  const text = new Uint8Array(exports.memory.buffer, answer, exports.answer_bytes());
  return JSON.parse(new TextDecoder().decode(text));
}

onmessage = async ({ data }) => {
  if (data.program) {
    ({ exports } = await WebAssembly.instantiate(data.program, {}));
    postMessage({ ready: true });
    return;
  }
  try {
    postMessage({ number: data.number, answer: ask(data.question) });
  } catch (error) {
    // The program has trapped: what it holds cannot be trusted any more.
    postMessage({ number: data.number, trapped: String(error.message ?? error) });
  }
};
