// Asks the worker one question at a time.  A newer question of a kind replaces one that waits; a
// worker that is busy for too long with a question that is not waited for any more is replaced, too.
const PATIENCE = 4000; // milliseconds

export class Engine {
  #worker = null;
  #waiting = new Map(); // by kind: { question, resolve }, in the order of asking
  #running = null; // { id, kind, resolve, since, stale }
  #id = 0;
  #ready = false;
  #timer = 0;

  // Resolves when the worker can answer; rejects with the reason if it never will.
  start() {
    return new Promise((resolve, reject) => {
      this.#begin(resolve, reject);
    });
  }

  #begin(resolve, reject) {
    this.#worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => {
      if (data.failed) reject(new Error(data.failed));
      else if (data.ready) {
        this.#ready = true;
        resolve();
        this.#next();
      } else this.#done(data);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message || "the worker did not load"));
    };
  }

  // The answer; null if a newer question of this kind came before it.
  ask(kind, ...question) {
    return new Promise((resolve) => {
      this.drop(kind);
      this.#waiting.set(kind, { question, resolve });
      this.#next();
    });
  }

  // The answer to a question of this kind is not waited for any more.
  drop(kind) {
    this.#waiting.get(kind)?.resolve(null);
    this.#waiting.delete(kind);
    if (this.#running?.kind === kind) this.#running.stale = true;
  }

  #next() {
    clearTimeout(this.#timer);
    if (!this.#ready || this.#waiting.size === 0) return;
    if (this.#running) {
      if (this.#running.stale) {
        const left = PATIENCE - (performance.now() - this.#running.since);
        this.#timer = setTimeout(() => this.#replace(), Math.max(0, left));
      }
      return;
    }
    const [kind, { question, resolve }] = this.#waiting.entries().next().value;
    this.#waiting.delete(kind);
    this.#running = { id: ++this.#id, kind, resolve, since: performance.now(), stale: false };
    this.#worker.postMessage({ id: this.#id, question });
  }

  #done({ id, answer }) {
    if (this.#running?.id !== id) return;
    const { resolve, stale } = this.#running;
    this.#running = null;
    resolve(stale ? null : answer);
    this.#next();
  }

  #replace() {
    if (!this.#running?.stale || this.#waiting.size === 0) return;
    this.#worker.terminate();
    this.#running.resolve(null);
    this.#running = null;
    this.#ready = false;
    this.#begin(
      () => {},
      () => {},
    );
  }
}
