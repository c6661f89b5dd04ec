// The state of the page in its address: #s=SCHEDULE&puzzle=NAME&draw=KIND&shape=SHAPE, the schedule
// deflated and in base64 as addresses take it.

async function through(stream, data) {
  const response = new Response(new Blob([data]).stream().pipeThrough(stream));
  return new Uint8Array(await response.arrayBuffer());
}

export async function packed(text) {
  const data = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  const letters = btoa(String.fromCharCode(...data));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export async function unpacked(letters) {
  const plain = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
  const data = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  const text = await through(new DecompressionStream("deflate-raw"), data);
  return new TextDecoder("utf-8", { fatal: true }).decode(text);
}

// What the address says, or null if it says nothing; `broken` if its schedule can't be read.
export async function read() {
  const found = new URLSearchParams(location.hash.slice(1));
  if (!found.has("s")) return null;
  const state = { puzzle: found.get("puzzle"), draw: found.get("draw"), shape: found.get("shape") };
  try {
    return { ...state, text: await unpacked(found.get("s")) };
  } catch {
    return { ...state, broken: true };
  }
}

export async function write({ text, puzzle, draw, shape }) {
  const found = new URLSearchParams({ s: await packed(text) });
  if (puzzle) found.set("puzzle", puzzle);
  if (draw) found.set("draw", draw);
  if (shape) found.set("shape", shape);
  history.replaceState(null, "", `#${found}`);
}
