"use strict";
// Pointing at a picture, or using the arrow keys in it, shows its figures: those of the panel under the pointer; up and down
// select the previous or the next panel. The figures are next to the picture as JSON; the positions of points are read from
// the picture's lines. Without this script, the table behind each picture has the same figures.

const SVG = "http://www.w3.org/2000/svg";
const SHOWN_MAX = 10;

function made(tag, parent, text) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function shown(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** The positions of a line's points, in the picture's units: a line is its first point, and the step to each next one. */
function places(line) {
  const steps = (line.getAttribute("d").match(/-?\d*\.?\d+/g) ?? []).map(Number);
  let [x, y] = [0, 0];
  return steps.flatMap((step, index) => {
    if (index % 2 === 0) x += step;
    else y += step;
    return index % 2 === 0 ? [] : [[x, y]];
  });
}

function nearest(points, x) {
  let best = 0;
  points.forEach((point, index) => {
    if (Math.abs(point[0] - x) < Math.abs(points[best][0] - x)) best = index;
  });
  return best;
}

/** The panels of a picture: for each the position of its axes, its curves, and the curve with the most points. */
function panelsOf(svg, data) {
  const lines = [...svg.querySelectorAll("g[clip-path] > path[fill=none]")];
  const panels = new Map();
  data.series.forEach((series, index) => {
    const clip = lines[index].parentNode.getAttribute("clip-path").slice(4, -1);
    const across = series.at ?? data.at;
    const points = series.points.map((values, place) => [across[place], ...values]);
    const curve = { name: series.name, points, line: lines[index], at: places(lines[index]) };
    const panel = panels.get(clip) ?? { curves: [], longest: curve };
    panel.curves.push(curve);
    if (curve.at.length > panel.longest.at.length) panel.longest = curve;
    panels.set(clip, panel);
  });
  return [...panels].filter(([, panel]) => panel.longest.at.length > 0).map(([clip, panel]) => {
    const axes = svg.querySelector(`${clip} rect`);
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(axes.getAttribute(name)));
    return { ...panel, x, y, width, height };
  });
}

function setUp(figure) {
  const svg = figure.querySelector("svg");
  const frame = figure.querySelector(".plot");
  const source = figure.querySelector("script");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const panels = panelsOf(svg, data);
  if (panels.length === 0) return;
  const marks = document.createElementNS(SVG, "g");
  svg.append(marks);
  const tip = made("div", figure);
  tip.className = "tip";
  tip.hidden = true;
  let panel = panels[0];
  let chosen = null;

  function hide() {
    chosen = null;
    tip.hidden = true;
    marks.replaceChildren();
  }

  function show(index, height) {
    chosen = index;
    const { curves, longest, y: top, height: tall } = panel;
    const right = longest.at[index][0];
    const found = curves.map((curve) => {
      const place = curve.at.length ? nearest(curve.at, right) : -1;
      const there = place >= 0 && Math.abs(curve.at[place][0] - right) < 4;
      return there && { curve, point: curve.points[place], at: curve.at[place] };
    }).filter(Boolean);
    found.sort((one, other) => Math.abs(one.at[1] - height) - Math.abs(other.at[1] - height));
    const near = found.slice(0, SHOWN_MAX).sort((one, other) => one.at[1] - other.at[1]);
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", `M${right} ${top}v${tall}`);
    line.setAttribute("class", "cursor");
    marks.replaceChildren(line);
    tip.replaceChildren();
    made("p", tip, `${data.x} ${shown(longest.points[index][0])}`);
    const table = made("table", tip);
    for (const { curve, point, at } of near) {
      const dot = document.createElementNS(SVG, "circle");
      const colour = getComputedStyle(curve.line).stroke;
      for (const [name, value] of Object.entries({ cx: at[0], cy: at[1], r: 4, fill: colour, class: "dot" })) {
        dot.setAttribute(name, value);
      }
      marks.append(dot);
      const row = made("tr", table);
      made("i", made("td", row)).style.background = colour;
      made("th", row, curve.name);
      made("td", row, shown(point[1]));
      const band = point.length > 2 && point[2] !== point[3];
      made("td", row, band ? `${shown(point[2])} to ${shown(point[3])}` : "");
    }
    if (found.length > near.length) made("p", tip, `and ${found.length - near.length} others`);
    tip.hidden = false;
    // Below the axis, so that it hides no curve.
    const box = figure.getBoundingClientRect();
    const shape = svg.getBoundingClientRect();
    const x = shape.left - box.left + (right / svg.viewBox.baseVal.width) * shape.width;
    const left = x - tip.offsetWidth / 2;
    const below = ((top + tall + 28) / svg.viewBox.baseVal.height) * shape.height;
    tip.style.left = `${Math.max(4, Math.min(left, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${shape.top - box.top + below}px`;
  }

  frame.addEventListener("pointermove", (event) => {
    const shape = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / shape.width;
    const [x, y] = [(event.clientX - shape.left) * scale, (event.clientY - shape.top) * scale];
    const away = ({ x: left, y: top, width, height }) =>
      Math.hypot(Math.max(left - x, 0, x - left - width), Math.max(top - y, 0, y - top - height));
    panel = panels.reduce((one, other) => (away(other) < away(one) ? other : one));
    show(nearest(panel.longest.at, x), y);
  });
  frame.addEventListener("pointerleave", hide);
  frame.addEventListener("blur", hide);
  frame.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const turn = panels.length > 1 ? { ArrowUp: -1, ArrowDown: 1 }[event.key] : undefined;
    panel = panels[panels.indexOf(panel) + (turn ?? 0)] ?? panel;
    const last = panel.longest.at.length - 1;
    const to = { ArrowLeft: (chosen ?? last + 1) - 1, ArrowRight: (chosen ?? -1) + 1, Home: 0, End: last,
      ArrowUp: turn && (chosen ?? 0), ArrowDown: turn && (chosen ?? 0) }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(Math.max(0, Math.min(last, to)), 0);
  });
}

for (const figure of document.querySelectorAll("figure[data-curves]")) setUp(figure);

/** Buttons that copy a candidate. Where a browser offers no clipboard, there are none. */
for (const button of document.querySelectorAll("button.copy")) {
  if (!navigator.clipboard) button.remove();
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}
