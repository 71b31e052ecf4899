// The ratings of players with their intervals, as a picture.

import { h, s } from "./dom.js";
import { number } from "./format.js";

const [WIDTH, ROW, TOP, BOTTOM, RIGHT] = [760, 30, 10, 52, 74];
/** The width of a letter, and of the longest name that is not cut. */
const [LETTER, NAMES_MAX] = [8, 260];
const TICKS = 6;

/** Round numbers within a range. */
function ticks(low, high) {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((nice) => nice * power).find((nice) => nice >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, index) => (first + index) * step);
}

/** The picture of an arm's players, the strongest first. */
export function ratingsOf({ arm, players }, named) {
  const ends = players.flatMap(({ rating, interval }) => [rating, ...(interval ?? [])]).filter(Number.isFinite);
  const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const room = (most - least || 1) * 0.04;
  const [low, high] = [least - room, most + room];
  const left = Math.min(NAMES_MAX, 24 + LETTER * Math.max(...players.map(({ player }) => player.length)));
  const height = TOP + ROW * players.length + BOTTOM;
  const base = height - BOTTOM;
  const x = (value) => left + ((value - low) / (high - low)) * (WIDTH - RIGHT - left);
  const letters = Math.floor((left - 24) / LETTER);
  const parts = ticks(low, high).flatMap((tick) => [
    s("path", { class: "grid", d: `M${x(tick).toFixed(1)} ${TOP}V${base}` }),
    s("text", { x: x(tick), y: base + 20, "text-anchor": "middle" }, number(tick))]);
  players.forEach(({ player, rating, interval }, index) => {
    const y = TOP + ROW * (index + 0.5);
    const short = player.length > letters ? `${player.slice(0, letters - 1)}…` : player;
    parts.push(s("text", { class: "who", x: left - 12, y: y + 5, "text-anchor": "end" }, short));
    if (!Number.isFinite(rating)) return;
    if (interval) parts.push(s("path", { class: "range", d: `M${x(interval[0])} ${y}H${x(interval[1])}` }));
    parts.push(s("circle", { cx: x(rating), cy: y, r: 5 }),
      s("text", { x: WIDTH - 6, y: y + 5, "text-anchor": "end" }, number(Math.round(rating))));
  });
  parts.push(s("text", { class: "name", x: (left + WIDTH - RIGHT) / 2, y: height - 8, "text-anchor": "middle" },
    `rating in Elo points${players.some((one) => one.interval) ? ", with 95 % interval" : ""}`));
  const best = players[0] ? `${players[0].player} first` : "no player";
  const picture = s("svg", { class: "picture ratings", viewBox: `0 0 ${WIDTH} ${height}`, role: "img",
    "aria-label": `Ratings of ${players.length} players, ${best}; the table below has the numbers` }, ...parts);
  return h("div", null, h("h2", null, named ? `Ratings: ${arm}` : "Ratings"),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Picture of the ratings" }, picture));
}
