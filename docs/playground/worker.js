// Runs gemmgen: a question is a JSON text for answers.answer, and so is its answer.
let answer;

async function bytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status}: ${address.pathname}`);
  return response.arrayBuffer();
}

async function start() {
  const base = new URL("runtime/", import.meta.url);
  const response = await fetch(new URL("manifest.json", base), { cache: "no-cache" });
  const manifest = await response.json();
  if (!manifest.ready) throw new Error(manifest.reason);
  const runtime = new URL(`${manifest.runtime}/`, base);
  const app = bytes(new URL(manifest.app, base));
  const { loadPyodide } = await import(new URL("pyodide.mjs", runtime).href);
  const python = await loadPyodide({
    indexURL: runtime.href,
    stdLibURL: new URL(manifest.stdlib, base).href,
  });
  python.unpackArchive(await app, "zip", { extractDir: "/app" });
  python.runPython("import sys; sys.path.insert(0, '/app')");
  answer = python.pyimport("gemmgen_playground.answers").answer;
}

const started = start().then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, question } }) => {
  await started;
  try {
    postMessage({ id, answer: JSON.parse(answer(JSON.stringify(question))) });
  } catch (error) {
    postMessage({ id, answer: { report: `gemmgen failed:\n${error.message ?? error}` } });
  }
};
