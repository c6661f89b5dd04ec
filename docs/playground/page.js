// The page: an editor, and what gemmgen says of its schedule.
import * as address from "./address.js";
import { Engine } from "./engine.js";

const PAUSE = 150; // milliseconds after the last key
const parts = Object.fromEntries(
  [...document.querySelectorAll("#playground [data-part]")].map((e) => [e.dataset.part, e]),
);
const engine = new Engine();
const state = { started: null, examples: [], puzzles: [], changes: [], asked: 0, timer: 0 };

// Text as HTML, comments and changed lines marked.
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function kernelMarked(text) {
  return escaped(text).replace(/\/\/[^\n]*/g, '<span class="c1">$&</span>');
}

function diffMarked(text) {
  const kinds = { "+": "gi", "-": "gd", "@": "gu" };
  const lines = escaped(text).split("\n");
  return lines
    .map((line) => (kinds[line[0]] ? `<span class="${kinds[line[0]]}">${line}</span>` : line))
    .join("\n");
}

// Marks whether what is shown is still to follow the text.
function busy(is) {
  parts.panels.ariaBusy = String(is);
}

function said(text) {
  parts.status.textContent = text;
}

function option(value, label) {
  return new Option(label ?? value, value);
}

function numbered(mistakes = []) {
  const wrong = new Map(mistakes.map((m) => [m.line, m.message]));
  const count = parts.text.value.split("\n").length;
  parts.numbers.replaceChildren(
    ...Array.from({ length: count }, (_, at) => {
      const line = document.createElement("li");
      if (wrong.has(at + 1)) {
        line.className = "wrong";
        line.title = wrong.get(at + 1);
      }
      return line;
    }),
  );
  parts.text.rows = Math.max(12, count + 1);
}

function reported(text) {
  parts.report.hidden = !text;
  parts.report.textContent = text;
}

function showChange() {
  const chosen = state.changes[parts.changes.selectedIndex];
  if (!chosen) return;
  const text = parts.changes.value === "" ? allChanges() : chosen[1];
  parts.diff.innerHTML = parts.changes.selectedIndex === 1 ? escaped(text) : diffMarked(text);
}

function allChanges() {
  return state.changes
    .slice(2)
    .map(([, text]) => text)
    .join("\n");
}

function showChanges(changes) {
  const before = parts.changes.value;
  state.changes = [["", ""], ...changes];
  parts.changes.replaceChildren(
    option("", "what all passes changed"),
    ...changes.map(([name], at) => option(name, at ? `what ${name} changed` : "the naive program")),
  );
  parts.changes.value = changes.some(([name]) => name === before) ? before : "";
  parts.changes.disabled = false;
  showChange();
}

// Compiles the text, then draws and counts: each as soon as the one before is there.
async function compile() {
  if (!state.started) return;
  await state.started;
  const text = parts.text.value;
  const begun = performance.now();
  engine.drop("draw");
  engine.drop("count");
  busy(true);
  address.write(current());
  const found = await engine.ask("compile", "compiled", text);
  if (found === null) return;
  numbered(found.mistakes);
  reported(found.report);
  for (const part of ["kernel", "diff", "drawing", "counts"])
    parts[part].classList.toggle("old", !found.cuda);
  if (!found.cuda) {
    said("the schedule has a mistake");
    busy(false);
    return;
  }
  parts.kernel.innerHTML = kernelMarked(found.cuda);
  showChanges(found.changes);
  said(`kernel in ${seconds(begun)}`);
  follow();
}

// Draws and counts again; not busy any more once nothing newer was asked meanwhile.
async function follow() {
  busy(true);
  const asked = ++state.asked;
  await Promise.all([draw(), count()]);
  if (asked === state.asked) busy(false);
}

function seconds(begun) {
  return `${((performance.now() - begun) / 1000).toFixed(1)} s`;
}

async function draw() {
  parts.drawing.classList.add("old");
  const found = await engine.ask("draw", "drawn", parts.text.value, parts.kinds.value);
  if (found === null) return false;
  parts.drawing.classList.remove("old");
  if (found.svg) parts.drawing.innerHTML = found.svg;
  else parts.drawing.textContent = found.report;
  return true;
}

async function count() {
  parts.counts.classList.add("old");
  const begun = performance.now();
  const found = await engine.ask("count", "counted", parts.text.value, parts.shape.value);
  if (found === null) return false;
  parts.counts.classList.remove("old");
  parts.counts.textContent = found.text ?? found.report;
  if (found.text) said(`counted in ${seconds(begun)}`);
  return true;
}

function current() {
  return {
    text: parts.text.value,
    puzzle: parts.puzzles.value,
    draw: parts.kinds.value,
    shape: parts.shape.value,
  };
}

function edited() {
  numbered();
  busy(true);
  state.asked += 1;
  parts.verdict.textContent = "";
  clearTimeout(state.timer);
  state.timer = setTimeout(compile, PAUSE);
}

function use(text) {
  parts.text.value = text;
  edited();
}

function showPuzzle(name) {
  const puzzle = state.puzzles.find((p) => p.name === name);
  parts.puzzle.hidden = !puzzle;
  parts.verdict.textContent = "";
  if (!puzzle) return;
  parts["puzzle-title"].textContent = puzzle.title;
  parts["puzzle-text"].textContent = puzzle.text;
  parts.shape.value = puzzle.shape;
  showGoals(puzzle.goals.map((text) => ({ text })));
}

function showGoals(goals) {
  parts.goals.replaceChildren(
    ...goals.map(({ text, found, passed }) => {
      const item = document.createElement("li");
      item.className = passed === undefined ? "" : passed ? "passed" : "failed";
      const mark = passed === undefined ? "" : passed ? "✓ " : "✗ ";
      item.textContent = `${mark}${text}${found ? `: ${found}` : ""}`;
      return item;
    }),
  );
}

async function check() {
  if (!state.started) return;
  parts.verdict.textContent = "checking ...";
  const begun = performance.now();
  engine.drop("draw");
  engine.drop("count");
  const found = await engine.ask("grade", "graded", parts.puzzles.value, parts.text.value);
  follow();
  if (found === null) return;
  if (!found.goals) {
    reported(found.report);
    parts.verdict.textContent = "the schedule has a mistake";
    return;
  }
  showGoals(found.goals);
  parts.verdict.textContent = `${found.passed ? "solved" : "not yet"} (${seconds(begun)})`;
}

function fill(tasks, starts, kinds) {
  state.puzzles = tasks.puzzles;
  state.examples = starts.examples;
  parts.puzzles.replaceChildren(
    option("", "none"),
    ...tasks.puzzles.map((p, at) => option(p.name, `${at + 1}. ${p.title}`)),
  );
  const groups = Map.groupBy
    ? Map.groupBy(starts.examples, (e) => e.name.split("/").slice(0, -1).join("/"))
    : new Map([["", starts.examples]]);
  parts.examples.replaceChildren(option("", "choose ..."));
  for (const [folder, members] of groups) {
    const group = document.createElement("optgroup");
    group.label = folder || "ladder and more";
    group.append(...members.map((e) => Object.assign(option(e.name), { title: e.about })));
    parts.examples.append(group);
  }
  parts.kinds.replaceChildren(
    ...Object.entries(kinds.kinds).map(([kind, about]) => option(kind, `${kind}: ${about}`)),
  );
  for (const part of ["puzzles", "examples", "kinds", "shape", "copy"]) parts[part].disabled = false;
}

function start() {
  state.started ??= (async () => {
    const begun = performance.now();
    parts.start.disabled = true;
    said("loading ...");
    try {
      await engine.start();
      const asked = ["tasks", "starts", "kinds"].map((name) => engine.ask(name, name));
      fill(...(await Promise.all(asked)));
    } catch (error) {
      said("not available");
      reported(error.message);
      return new Promise(() => {}); // nothing comes after
    }
    parts.start.hidden = true;
    parts.start.dataset.seconds = (performance.now() - begun) / 1000;
    await restore();
  })();
  compile();
}

// Takes the state from the address, if it has one.
async function restore() {
  const found = await address.read();
  if (!found) return;
  if (found.puzzle) {
    parts.puzzles.value = found.puzzle;
    showPuzzle(found.puzzle);
  }
  if (found.draw in { ...Object.fromEntries([...parts.kinds.options].map((o) => [o.value, 1])) })
    parts.kinds.value = found.draw;
  if (found.shape) parts.shape.value = found.shape;
  if (found.broken) reported("the address is cut off or damaged: its schedule can't be read");
  else parts.text.value = found.text;
  numbered();
}

parts.start.addEventListener("click", start);
parts.text.addEventListener("input", () => {
  edited();
  start();
});
parts.check.addEventListener("click", check);
parts.changes.addEventListener("change", showChange);
parts.kinds.addEventListener("change", () => {
  address.write(current());
  follow();
});
parts.shape.addEventListener("change", () => {
  address.write(current());
  follow();
});
parts.examples.addEventListener("change", () => {
  const found = state.examples.find((e) => e.name === parts.examples.value);
  if (!found) return;
  parts.puzzles.value = "";
  showPuzzle("");
  use(found.text);
});
parts.puzzles.addEventListener("change", () => {
  const name = parts.puzzles.value;
  showPuzzle(name);
  parts.examples.value = "";
  if (name) use(state.puzzles.find((p) => p.name === name).start);
});
parts.copy.addEventListener("click", async () => {
  await address.write(current());
  try {
    await navigator.clipboard.writeText(location.href);
    said("link copied");
  } catch {
    said("copy the address of this page");
  }
});
addEventListener("hashchange", async () => {
  if (!state.started) return start();
  await state.started;
  await restore();
  compile();
});
numbered();
if (location.hash.includes("s=")) start();
