// Draws curves as SVG: lines and bands, axes, names at the ends of lines.

import { s } from "./dom.js";
import { number } from "./format.js";

const COLOURS = 8;
const DASHES = [null, "8 4", "2 4", "10 4 2 4"];
/** With more curves, bands and names at the ends would overlap. */
const CROWD = 8;
/** A narrower picture is lower and has no names at the ends of lines. */
const NARROW = 560;
const NAME_HEIGHT = 17;
const LETTER = 7.7;
const NAMES_MAX = 215;
/** The first share of the horizontal axis, which a zoomed picture ignores. */
const BEGINNING = 0.15;
/** Ticks closer than this, relative to their size, cannot be round numbers. */
const NEAR = 1e-12;
/** The least distance between two rings on a line. */
const RING_GAP = 44;

/** The look of a curve: a colour, and a dash that distinguishes it without colour. */
export function look(index) {
  return { class: `c${index % COLOURS}`, dash: DASHES[(index + Math.floor(index / COLOURS)) % DASHES.length] };
}

/** A short piece of an arm's curve, for legends. */
export function sample({ index, ringed }) {
  const { class: colour, dash } = look(index);
  return s("svg", { class: `sample ${colour}`, viewBox: "0 0 26 10", "aria-hidden": "true" },
    s("path", { d: "M1 5H25", class: "line", "stroke-dasharray": dash }), ringed && ring([13, 5]));
}

function ring([cx, cy]) {
  return s("circle", { class: "ring", cx, cy, r: 3.4 });
}

/** Points of a curve with some room between them. */
function spaced(points) {
  const far = (kept, point) => kept.length === 0 || point[0] - kept.at(-1)[0] >= RING_GAP;
  return points.reduce((kept, point) => (far(kept, point) ? [...kept, point] : kept), []);
}

/** Round numbers that cover a range. */
function ticks(low, high, wanted, whole) {
  // The difference of two numbers may exceed the largest number.
  const rough = Number.isFinite(high - low) ? (high - low || 1) / wanted : high / wanted - low / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((nice) => nice * power).find((nice) => nice >= rough * 0.999);
  if (whole) step = Math.max(1, step);
  // If the range is too small for round numbers, its ends are the ticks. This also ends the recursion.
  if (!(step > NEAR * Math.max(Math.abs(low), Math.abs(high)))) return [low, high];
  const end = Math.min(Number.MAX_VALUE, high + step * 1e-9);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= end; at += 1) found.push(at * step);
  // A range between two round numbers has hardly any ticks, so finer ones are used.
  if (found.length < 3 && !whole && high > low) return ticks(low, high, 2 * wanted, whole);
  return found.map((value) => Number(value.toPrecision(12)));
}

/** The powers of ten in a range, with steps between them if there are few. */
function logTicks(low, high) {
  const found = [];
  const decades = Math.log10(high) - Math.log10(low);
  const every = Math.max(1, Math.ceil(decades / 8));
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    if (power % every !== 0) continue;
    for (const factor of decades > 2 ? [1] : [1, 2, 5]) found.push(factor * 10 ** power);
  }
  return found.filter((value) => value >= low * 0.999 && value <= Math.min(Number.MAX_VALUE, high * 1.001));
}

function path(points) {
  return points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** Moves overlapping names apart, as little as possible. */
function apart(names, top, bottom) {
  names.sort((a, b) => a.y - b.y);
  names.forEach((name, index) => {
    name.y = Math.max(name.y, index ? names[index - 1].y + NAME_HEIGHT : top);
  });
  for (let index = names.length - 1, most = bottom; index >= 0; index -= 1, most -= NAME_HEIGHT) {
    names[index].y = Math.min(names[index].y, most);
    most = Math.min(most, names[index].y);
  }
  return names;
}

/** Maps values to places between two ends. */
function scale(low, high, from, to, log) {
  // Halves are used because the whole range may exceed the largest number.
  const by = log ? Math.log10 : (value) => value / 2;
  const [first, span] = [by(low), by(high) - by(low) || 1];
  return (value) => from + ((by(value) - first) / span) * (to - from);
}

function range(values, otherwise) {
  return values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)],
    values.length > 0 ? [values[0], values[0]] : otherwise);
}

/** The vertical range of these points of curves. */
function heights(arms, lists, usable, log) {
  const values = lists.flatMap((list) => arms.flatMap((arm) => arm[list].filter(usable(arm))));
  const [low, high] = range(values, log ? [0.1, 1] : [0, 1]);
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const factor = high > low ? 1.1 : 2;
  const [least, most] = log ? [low / factor, high * factor] : [low - room, high + room];
  return [Math.max(least, log ? Number.MIN_VALUE : -Number.MAX_VALUE), Math.min(most, Number.MAX_VALUE)];
}

/** The points of a curve that an axis can show. */
function shown(arm, log) {
  const kept = arm.x.map((_, at) => at).filter((at) => !log || arm.mean[at] > 0);
  const of = (list) => kept.map((at) => list[at]);
  return { ...arm, x: of(arm.x), mean: of(arm.mean), low: of(arm.low), high: of(arm.high), count: of(arm.count) };
}

function decades(arms) {
  const [least, most] = range(arms.flatMap((arm) => arm.mean), [1, 1]);
  return least > 0 ? Math.log10(most / least) : 0;
}

/** The layout: the curves to draw, the scales and the margins. */
export function frame(data, width) {
  const height = width < NARROW ? 260 : 360;
  const arms = data.arms.map((arm) => shown(arm, data.log)).filter((arm) => arm.x.length > 0);
  const crowded = arms.length > CROWD;
  const named = !crowded && arms.length > 1 && width >= NARROW;
  const longest = Math.max(0, ...arms.map((arm) => arm.name.length));
  const margin = { left: 66, right: named ? Math.min(NAMES_MAX, 26 + LETTER * longest) : 16, top: 12, bottom: 48 };
  const [first, last] = range(arms.flatMap((arm) => arm.x), [0, 1]);
  const [left, right] = [Math.min(first, data.whole ? 1 : 0), Math.max(last, data.whole ? 2 : 1)];
  const lists = crowded ? ["mean"] : ["low", "high"];
  const positive = (value) => !data.log || value > 0;
  const everything = heights(arms, lists, () => positive, data.log);
  const late = left + BEGINNING * (right - left);
  const end = heights(arms, lists, (arm) => (value, at) => positive(value) && arm.x[at] >= late, data.log);
  const [low, high] = data.zoom ? end : everything;
  return {
    ...data, arms, crowded, named, margin, width, height, low, high, left, right,
    base: height - margin.bottom,
    x: scale(left, right, margin.left, width - margin.right, false),
    y: scale(low, high, height - margin.bottom, margin.top, data.log),
    /** How much a zoom would magnify, and how many powers of ten the means span if all are positive. */
    gain: (everything[1] - everything[0]) / (end[1] - end[0] || 1),
    decades: decades(data.arms),
  };
}

/** The axes of a frame. */
export function axes({ margin, width, height, low, high, left, right, base, x, y, log, whole, xName }) {
  const parts = [];
  for (const tick of log ? logTicks(low, high) : ticks(low, high, height < 300 ? 4 : 6, false)) {
    const at = y(tick).toFixed(1);
    parts.push(s("path", { class: "grid", d: `M${margin.left} ${at}H${width - margin.right}` }),
      s("text", { x: margin.left - 8, y: at, dy: "0.33em", "text-anchor": "end" }, number(tick, 4)));
  }
  parts.push(s("path", { class: "axis", d: `M${margin.left} ${base}H${width - margin.right}` }));
  for (const tick of ticks(left, right, width < NARROW ? 4 : 8, whole)) {
    const at = x(tick).toFixed(1);
    parts.push(s("path", { class: "axis", d: `M${at} ${base}v5` }),
      s("text", { x: at, y: base + 21, "text-anchor": "middle" }, number(tick, 4)));
  }
  const middle = (margin.left + width - margin.right) / 2;
  parts.push(s("text", { class: "name", x: middle, y: height - 6, "text-anchor": "middle" }, xName));
  return parts;
}

/** The curves of a frame, on top of their bands. Everything outside the axes is cut off. */
export function curves({ arms, crowded, margin, width, base, low, x, y, log }) {
  const inside = s("g", { "clip-path": "url(#axes)" });
  const clip = s("clipPath", { id: "axes" },
    s("rect", { x: margin.left - 3, y: margin.top - 4, width: width - margin.left - margin.right + 6,
      height: base - margin.top + 5 }));
  const down = (value) => y(log && value <= 0 ? low : value);
  for (const arm of crowded ? [] : arms) {
    const upper = arm.x.map((value, at) => [x(value), down(arm.high[at])]);
    const lower = arm.x.map((value, at) => [x(value), down(arm.low[at])]).reverse();
    inside.append(s("path", { class: `band ${look(arm.index).class}`, d: `${path([...upper, ...lower])}Z` }));
  }
  for (const arm of arms) {
    const { class: colour, dash } = look(arm.index);
    const points = arm.x.map((value, at) => [x(value), y(arm.mean[at])]);
    const [cx, cy] = points[0];
    if (points.length === 1) inside.append(s("circle", { class: `dot ${colour}`, cx, cy, r: 4 }));
    inside.append(s("path", { class: `line ${colour}`, d: path(points), "stroke-dasharray": dash }));
    if (arm.ringed) inside.append(s("g", { class: colour }, ...spaced(points).map(ring)));
  }
  return [clip, inside];
}

/** The names of a frame's curves at their ends. */
export function names({ arms, named, margin, width, base, x, y }) {
  const within = (at) => Math.max(margin.top, Math.min(base, at));
  const end = (arm) => ({ arm, x: x(arm.x.at(-1)), end: within(y(arm.mean.at(-1))), y: within(y(arm.mean.at(-1))) });
  const letters = Math.floor((margin.right - 24) / LETTER);
  const from = width - margin.right + 6;
  return (named ? apart(arms.map(end), margin.top + 4, base - 4) : []).flatMap((name) => {
    const text = name.arm.name;
    const short = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
    const leader = `M${(name.x + 3).toFixed(1)} ${name.end.toFixed(1)}L${from} ${name.y.toFixed(1)}h8`;
    const place = { x: from + 12, y: name.y, dy: "0.33em" };
    return [s("path", { class: "leader", d: leader }),
      s("text", { class: `end ${look(name.arm.index).class}`, ...place }, short)];
  });
}
