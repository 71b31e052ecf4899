// A chart of curves with a cursor that shows the exact values, by pointer and by keyboard.

import { attribute, h, s } from "./dom.js";
import { count, number } from "./format.js";
import { axes, curves, frame, look, names, sample } from "./plot.js";

/** The most curves that the cursor describes. */
const TOLD = 14;
/** The values of the curves of a frame at an x, each at its nearest point if it extends so far; highest first. */
function figures(drawn, value) {
  const reaches = ({ x }) => value >= x[0] && value <= x.at(-1);
  const nearest = (arm) => {
    const after = arm.x.findIndex((other) => other >= value);
    const index = after > 0 && value - arm.x[after - 1] < arm.x[after] - value ? after - 1 : after;
    return { arm, index, exact: arm.x[index] === value };
  };
  return drawn.arms.filter(reaches).map(nearest).sort((a, b) => b.arm.mean[b.index] - a.arm.mean[a.index]);
}

function row({ arm, index, exact }) {
  return h("tr", null, h("td", null, sample(arm)), h("th", { scope: "row" }, arm.name),
    h("td", { class: "number" }, number(arm.mean[index], 5)),
    h("td", { class: "number soft" }, `${number(arm.low[index], 3)} to ${number(arm.high[index], 3)}`),
    h("td", { class: "number soft" }, `n ${count(arm.count[index])}${exact ? "" : ` at ${number(arm.x[index], 6)}`}`));
}

function sentence({ arm, index }) {
  return `${arm.name} ${number(arm.mean[index], 5)}, ${number(arm.low[index], 3)} to ${number(arm.high[index], 3)}`;
}

/**
 * A chart. `update({arms, xName, yName, log, whole, zoom})` draws it and returns its frame. Arms have a name and an
 * index, the lists x, mean, low, high and count, and optionally `ringed`, which puts rings on the line.
 */
export function chart() {
  const picture = s("svg", { "aria-hidden": "true", class: "picture" });
  const tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const node = h("div", { class: "chart", role: "slider", tabindex: "0", "aria-valuemin": 0, "aria-valuemax": 0,
    "aria-valuenow": 0, "aria-valuetext": "no figures yet", "aria-label": "Curves" }, picture, tip);
  const mark = s("g", { class: "cursor" });
  let [data, drawn, xs, cursor] = [null, null, [], null];

  function draw() {
    const width = node.clientWidth;
    if (!data || !width) return null;
    drawn = frame(data, width);
    attribute(picture, "viewBox", `0 0 ${width} ${drawn.height}`);
    attribute(picture, "height", drawn.height);
    picture.replaceChildren(...axes(drawn), ...curves(drawn), ...names(drawn), mark);
    xs = [...new Set(drawn.arms.flatMap((arm) => arm.x))].sort((a, b) => a - b);
    attribute(node, "aria-label", `${data.yName} by ${data.xName}; arrow keys move along it`);
    attribute(node, "aria-valuemin", xs[0] ?? 0);
    attribute(node, "aria-valuemax", xs.at(-1) ?? 0);
    point(cursor);
    return drawn;
  }

  /** Moves the cursor to the point nearest to an x; null removes it. */
  function point(value) {
    const shown = value !== null && xs.length > 0;
    tip.hidden = !shown;
    mark.replaceChildren();
    const nearer = (best, other) => (Math.abs(other - value) < Math.abs(best - value) ? other : best);
    cursor = shown ? xs.reduce(nearer) : null;
    const place = cursor ?? xs.at(-1);
    if (place === undefined) return attribute(node, "aria-valuetext", "no figures yet");
    const told = figures(drawn, place);
    const words = told.slice(0, TOLD).map(sentence).join("; ");
    attribute(node, "aria-valuenow", place);
    attribute(node, "aria-valuetext", `${data.xName} ${number(place, 6)}: ${words}`);
    if (shown) describe(told);
  }

  /** Draws the cursor and the values next to it. */
  function describe(told) {
    const where = drawn.x(cursor);
    const inside = told.filter(({ arm, index }) => arm.mean[index] >= drawn.low && arm.mean[index] <= drawn.high);
    const dot = ({ arm, index }) => s("circle",
      { class: `dot ${look(arm.index).class}`, cx: drawn.x(arm.x[index]), cy: drawn.y(arm.mean[index]), r: 4 });
    mark.replaceChildren(s("path", { d: `M${where} ${drawn.margin.top}V${drawn.base}` }), ...inside.map(dot));
    tip.replaceChildren(h("p", null, `${data.xName} ${number(cursor, 6)}`),
      h("table", null, ...told.slice(0, TOLD).map(row)));
    const beside = where < drawn.width / 2 ? where + 16 : where - tip.offsetWidth - 16;
    tip.style.left = `${Math.max(0, Math.min(drawn.width - tip.offsetWidth - 8, beside))}px`;
  }

  node.addEventListener("pointermove", (event) => {
    if (xs.length === 0) return;
    const from = drawn.x(xs[0]);
    const share = (event.clientX - picture.getBoundingClientRect().left - from) / (drawn.x(xs.at(-1)) - from || 1);
    point(xs[0] + share * (xs.at(-1) - xs[0]));
  });
  node.addEventListener("pointerleave", () => point(null));
  node.addEventListener("blur", () => point(null));
  node.addEventListener("keydown", (event) => {
    const last = xs.length - 1;
    const index = cursor === null ? last + 1 : xs.indexOf(cursor);
    const page = Math.max(1, Math.round(xs.length / 10));
    const moves = { ArrowLeft: index - 1, ArrowDown: index - 1, ArrowRight: index + 1, ArrowUp: index + 1,
      PageDown: index - page, PageUp: index + page, Home: 0, End: last };
    if (event.key === "Escape") point(null);
    else if (event.key in moves && last >= 0) point(xs[Math.max(0, Math.min(last, moves[event.key]))]);
    else return;
    event.preventDefault();
  });
  const observer = new ResizeObserver(draw);
  observer.observe(node);
  return {
    node,
    picture,
    update(next) {
      data = next;
      return draw();
    },
    end: () => observer.disconnect(),
  };
}
