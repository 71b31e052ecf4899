// Small curves in the list of runs: the mean of the primary metric of each arm. They are asked for one run at a time,
// of the runs that are seen, and of a run that stands still once.

import { s } from "./dom.js";
import { get } from "./live.js";
import { look } from "./plot.js";

const POINTS = 30;
const [WIDTH, HEIGHT, EDGE] = [96, 22, 2];
/** The shortest time between two questions, and between two about the same run. */
const PAUSE_MS = 250;
const AGAIN_MS = 15_000;

/** Curves by run: `key` says of which state, `arms` has them. */
const known = new Map();
const wanted = new Map();
let busy = false;

/** Asks for what is wanted most: what was never asked for, then what is oldest. */
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
    // Another message of this run asks again, later.
    known.set(name, { key: "", at: Date.now(), arms: known.get(name)?.arms ?? [] });
  }
  setTimeout(() => {
    busy = false;
    ask();
  }, PAUSE_MS);
}

/** The arms of a run that have points, all in one range. */
export function paths(arms, shown) {
  const drawn = arms.slice(0, shown).filter((arm) => arm.mean.length > 1);
  const [xs, ys] = [drawn.flatMap((arm) => arm.x), drawn.flatMap((arm) => arm.mean)];
  const place = (values, size) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    // By halves: the whole range may be more than a number can say.
    return (value) => EDGE + ((value / 2 - low / 2) / (high / 2 - low / 2 || 1)) * (size - 2 * EDGE);
  };
  const [x, y] = [place(xs, WIDTH), place(ys, HEIGHT)];
  const point = (arm, at) => `${x(arm.x[at]).toFixed(1)} ${(HEIGHT - y(arm.mean[at])).toFixed(1)}`;
  const line = (arm) => `M${arm.mean.map((_, at) => point(arm, at)).join("L")}`;
  return new Map(drawn.map((arm) => [arm.name, line(arm)]));
}

/** The curves of a run's first arms. `of(name, index)` is the picture of one; `update` draws all anew if need be. */
export function sparks(card, shown) {
  const pictures = new Map();
  let [seen, latest] = [false, null];
  const observer = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (latest) update(latest);
  });
  observer.observe(card);
  function draw() {
    const lines = paths(known.get(latest.name).arms, shown);
    for (const [name, path] of pictures) path.setAttribute("d", lines.get(name) ?? "");
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
  return {
    update,
    of(name, index) {
      const { class: colour, dash } = look(index);
      const path = s("path", { class: "line", "stroke-dasharray": dash });
      pictures.set(name, path);
      return s("svg", { class: `spark ${colour}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" }, path);
    },
  };
}
