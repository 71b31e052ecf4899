// Small curves in the list of runs: the mean of each arm's primary metric. They are requested for one run at a time,
// only for visible runs, and only once for a run that does not advance.

import { s } from "./dom.js";
import { get } from "./live.js";
import { look } from "./plot.js";

const POINTS = 30;
const [WIDTH, HEIGHT, EDGE] = [96, 22, 2];
/** The shortest time between two requests, and between two for the same run. */
const PAUSE_MS = 250;
const AGAIN_MS = 15_000;

/** Curves by run: `key` is the state of the run that they show, `arms` has the curves. */
const known = new Map();
const wanted = new Map();
let busy = false;

/** Requests the most wanted curves: first those never requested, then the oldest. */
async function ask() {
  if (busy || wanted.size === 0) return;
  busy = true;
  const at = (name) => known.get(name)?.at ?? 0;
  const name = [...wanted.keys()].sort((one, other) => at(one) - at(other))[0];
  const { run, key, draw } = wanted.get(name);
  wanted.delete(name);
  try {
    const { arms } = await get(`/api/runs/${name}/curves?column=${run.primary}&points=${POINTS}`);
    known.set(name, { key, at: Date.now(), arms });
    draw();
  } catch {
    // A later message about this run retries.
    known.set(name, { key: "", at: Date.now(), arms: known.get(name)?.arms ?? [] });
  }
  setTimeout(() => {
    busy = false;
    ask();
  }, PAUSE_MS);
}

/** The arms of a run that have points, all drawn in one range. */
export function paths(arms, shown) {
  const drawn = arms.slice(0, shown).filter((arm) => arm.mean.length > 1);
  const [xs, ys] = [drawn.flatMap((arm) => arm.x), drawn.flatMap((arm) => arm.mean)];
  const place = (values, size) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    // Halves are used because the whole range may exceed the largest number.
    return (value) => EDGE + ((value / 2 - low / 2) / (high / 2 - low / 2 || 1)) * (size - 2 * EDGE);
  };
  const [x, y] = [place(xs, WIDTH), place(ys, HEIGHT)];
  const point = (arm, at) => `${x(arm.x[at]).toFixed(1)} ${(HEIGHT - y(arm.mean[at])).toFixed(1)}`;
  const line = (arm) => `M${arm.mean.map((_, at) => point(arm, at)).join("L")}`;
  return new Map(drawn.map((arm) => [arm.name, line(arm)]));
}

/** The curves of a run's first arms in one picture, drawn while `place` is visible. */
export function sparks(place, shown) {
  const node = s("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  let [seen, latest] = [false, null];
  const observer = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (latest) update(latest);
  });
  observer.observe(place);
  function draw() {
    const lines = paths(known.get(latest.name).arms, shown);
    const drawn = latest.arms.slice(0, shown).map((arm, index) => {
      const { class: colour, dash } = look(index);
      return s("path", { class: `line ${colour}`, "stroke-dasharray": dash, d: lines.get(arm.name) ?? "" });
    });
    node.replaceChildren(...drawn);
  }
  function update(run) {
    const first = latest === null;
    latest = run;
    const { key = "", at = 0 } = known.get(run.name) ?? {};
    if (first && at) draw();
    const now = `${run.config_hash} ${run.replicas_total} ${run.rounds_done} ${run.state}`;
    if (!seen || run.primary === null || run.rounds_done === 0 || key === now || Date.now() - at < AGAIN_MS) return;
    wanted.set(run.name, { run, key: now, draw });
    ask();
  }
  return { node, update };
}
