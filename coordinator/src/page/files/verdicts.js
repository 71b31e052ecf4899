// The verdicts of finished runs in the list: requested for one run at a time, only for visible runs, and only once.

import { get } from "./live.js";

const PAUSE_MS = 50;

/** Verdicts by run: `key` is the run's state that the verdict is about. */
const known = new Map();
const wanted = new Map();
let busy = false;

async function ask() {
  if (busy || wanted.size === 0) return;
  busy = true;
  const [name, { key, draw }] = wanted.entries().next().value;
  wanted.delete(name);
  // Not every run has a report on the page. Its row then shows its newest values.
  const { conclusion } = await get(`/api/runs/${name}/conclusion`).catch(() => ({ conclusion: "" }));
  known.set(name, { key, sentence: conclusion });
  draw();
  setTimeout(() => {
    busy = false;
    ask();
  }, PAUSE_MS);
}

/** A function that returns the verdict of a run, as far as it is known. `draw` is called when it arrives. */
export function verdictOf(place, draw) {
  let seen = false;
  const observer = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (seen) draw();
  });
  observer.observe(place);
  return (run) => {
    const key = `${run.config_hash} ${run.digest} ${run.state}`;
    const found = known.get(run.name);
    if (found?.key === key) return found.sentence;
    // Only finished runs have a conclusion that stays.
    if (seen && run.state !== "cancelled" && !wanted.has(run.name)) {
      wanted.set(run.name, { key, draw });
      ask();
    }
    return "";
  };
}
