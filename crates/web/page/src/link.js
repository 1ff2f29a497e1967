// The kernel and its arguments in the link: compressed, behind `#`, so that no server sees them.

const through = (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

/** The fragment of a link to this state. */
export async function toFragment(state) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
  return `#1${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** The state of a fragment, or null. */
export async function fromFragment(fragment) {
  if (!fragment.startsWith("#1")) return null;
  try {
    const text = atob(fragment.slice(2).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
    return typeof state.text === "string" && Array.isArray(state.args) ? state : null;
  } catch {
    return null;
  }
}
