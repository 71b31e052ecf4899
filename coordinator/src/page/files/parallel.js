// Parallel coordinates: an axis for each value of a candidate, and a line for each candidate.

import { attribute, h, s, text } from "./dom.js";
import { number } from "./format.js";
import { axis } from "./gene.js";

/** The most lines. They are the best candidates. */
const LINES_MAX = 300;
const [HEIGHT, TOP, BOTTOM, EDGE] = [260, 44, 30, 46];
/** The least distance between two axes: a narrow picture has fewer axes. */
const GAP = 92;
const LETTER = 7.6;

const cut = (name, width) => {
  const letters = Math.max(3, Math.floor(width / LETTER));
  return name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
};

/** The picture. `point(candidate)` is called with the candidate nearest to the pointer, or null. */
export function parallel(point) {
  const picture = s("svg", { class: "picture parallel", role: "img" });
  const told = h("p", { class: "soft told" }, "Point at a line to read its numbers.");
  const node = h("div", { class: "coordinates" }, picture, told);
  let [columns, candidates, places, picked] = [[], [], [], null];

  function draw() {
    const width = node.clientWidth;
    if (!width || columns.length === 0) return;
    const used = columns.slice(0, Math.max(2, Math.floor((width - 2 * EDGE) / GAP) + 1));
    const gap = used.length > 1 ? (width - 2 * EDGE) / (used.length - 1) : 0;
    const base = HEIGHT - BOTTOM;
    const axes = used.map((column, index) => {
      const values = candidates.map(({ values: own }) => own[column.at]).filter((value) => typeof value === "number");
      const scale = axis(values, column.low === undefined ? null : [column.low, column.high]);
      return { ...scale, column, x: used.length > 1 ? EDGE + index * gap : width / 2,
        y: (value) => (typeof value === "number" ? base - scale.place(value) * (base - TOP) : null) };
    });
    const line = ({ values }) => axes.map(({ column, x, y }) => [x, y(values[column.at])]);
    // The best candidates are drawn last, on top.
    places = candidates.slice(0, LINES_MAX).map((candidate) => ({ candidate, points: line(candidate) }));
    const path = (points) => points.filter(([, y]) => y !== null)
      .map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const lines = [...places].reverse().map(({ candidate, points }) =>
      s("path", { class: candidate.best ? "thread best" : "thread", d: path(points) }));
    const marks = axes.flatMap(({ column, x, low, high, log }, index) => {
      const anchor = index === 0 ? "start" : index === axes.length - 1 ? "end" : "middle";
      const from = anchor === "start" ? Math.max(2, x - EDGE + 4) : anchor === "end" ? width - 4 : x;
      const label = (value, y) => s("text", { x: from, y, "text-anchor": anchor }, value);
      const ends = Number.isFinite(low) ? [label(number(high, 3), TOP - 8), label(number(low, 3), base + 18)] : [];
      return [s("path", { class: "axis", d: `M${x} ${TOP}V${base}` }), ...ends,
        s("text", { class: column.role === "gene" ? "name" : "name aim", x: from, y: 16, "text-anchor": anchor },
          cut(column.name + (log ? " (log)" : ""), gap || width))];
    });
    attribute(picture, "viewBox", `0 0 ${width} ${HEIGHT}`);
    attribute(picture, "height", HEIGHT);
    const left = columns.length > used.length ? `, ${columns.length - used.length} more do not fit` : "";
    attribute(picture, "aria-label", `Parallel coordinates of ${places.length} candidates over `
      + `${used.map(({ name }) => name).join(", ")}${left}; the table below has the numbers`);
    picture.replaceChildren(...lines, ...marks, chosen);
    // New data keeps the candidate to which the pointer points.
    pick(places.find(({ candidate }) => candidate.id === picked?.id) ?? null);
  }

  const chosen = s("path", { class: "thread chosen" });

  function pick(found) {
    picked = found?.candidate ?? null;
    const path = found ? found.points.filter(([, y]) => y !== null)
      .map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") : "";
    attribute(chosen, "d", path);
    point(picked);
    const shown = columns.map(({ name, at }) => [name, found?.candidate.values[at]]);
    const value = (one) => (typeof one === "number" ? number(one, 5) : one ?? "–");
    text(told, found ? `Replica ${found.candidate.replica}: ${shown.map(([name, one]) => `${name} ${value(one)}`)
      .join(", ")}` : "Point at a line to read its numbers.");
  }

  /** The height of a line at an x, between its points. */
  function heightAt(points, x) {
    const after = points.findIndex(([other]) => other >= x);
    if (after < 0) return points.at(-1)[1];
    if (after === 0) return points[0][1];
    const [[x0, y0], [x1, y1]] = [points[after - 1], points[after]];
    return y0 === null || y1 === null ? null : y0 + ((x - x0) / (x1 - x0 || 1)) * (y1 - y0);
  }

  node.addEventListener("pointermove", (event) => {
    const area = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    const far = ({ points }) => {
      const height = heightAt(points, x);
      return height === null ? Infinity : Math.abs(height - y);
    };
    const nearest = places.reduce((best, one) => (best === null || far(one) < far(best) ? one : best), null);
    pick(y >= 0 && y <= HEIGHT ? nearest : null);
  });
  node.addEventListener("pointerleave", () => pick(null));
  const observer = new ResizeObserver(draw);
  observer.observe(node);
  return {
    node,
    update(next, shown, aim) {
      // The objective is the first axis.
      const aims = ({ at }) => at === aim.at;
      [columns, candidates] = [[...next.filter(aims), ...next.filter((one) => !aims(one))], shown];
      draw();
    },
    end: () => observer.disconnect(),
  };
}
