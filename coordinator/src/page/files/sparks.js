// Small curves in the list of runs: the median of each arm's primary metric.

import { answers, visible } from "./answers.js";
import { s } from "./dom.js";
import { get } from "./live.js";
import { look } from "./plot.js";

const POINTS = 30;
const [WIDTH, HEIGHT, EDGE] = [96, 22, 2];
/** Positive values farther apart than this are drawn on a logarithmic axis: otherwise only the first point shows. */
const FAR = 100;
/** The shortest time between two requests, and between two for the same run. */
const PAUSE_MS = 250;
const AGAIN_MS = 15_000;

/** The arms' curves of a run. */
const { known, want } = answers(PAUSE_MS, async ({ name, primary }) => {
  const { arms } = await get(`/api/runs/${name}/curves?column=${primary}&middle=median&points=${POINTS}`);
  return arms.map(({ median, ...arm }) => ({ ...arm, mean: median }));
});

/** The arms of a run that have points, all drawn in one range. */
export function paths(arms, shown) {
  const drawn = arms.slice(0, shown).filter((arm) => arm.mean.length > 1);
  const [xs, ys] = [drawn.flatMap((arm) => arm.x), drawn.flatMap((arm) => arm.mean)];
  const place = (values, size) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    // Halves are used because the whole range may exceed the largest number.
    const by = size === HEIGHT && low > 0 && high / low > FAR ? Math.log10 : (value) => value / 2;
    return (value) => EDGE + ((by(value) - by(low)) / (by(high) - by(low) || 1)) * (size - 2 * EDGE);
  };
  const [x, y] = [place(xs, WIDTH), place(ys, HEIGHT)];
  const point = (arm, at) => `${x(arm.x[at]).toFixed(1)} ${(HEIGHT - y(arm.mean[at])).toFixed(1)}`;
  const line = (arm) => `M${arm.mean.map((_, at) => point(arm, at)).join("L")}`;
  return new Map(drawn.map((arm) => [arm.name, line(arm)]));
}

/** The curves of a run's first arms in one picture, drawn while `place` is visible. */
export function sparks(place, shown) {
  const node = s("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  let latest = null;
  const seen = visible(place, () => latest && update(latest));
  function draw() {
    const lines = paths(known.get(latest.name).answer ?? [], shown);
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
    if (!seen() || run.primary === null || run.rounds_done === 0 || key === now || Date.now() - at < AGAIN_MS) return;
    want(run, now, draw);
  }
  return { node, update };
}
