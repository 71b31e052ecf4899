// A champion: its boards with their moves, its rules, or its kind's description; for a network, the coordinator's
// picture of its weights.

import { candidateOf } from "./candidate.js";
import { attribute, h, s } from "./dom.js";
import { get } from "./live.js";
import { savers } from "./save.js";

const CELL = 22;

/** A part's board as letters, the cell of its move, and the caption; null if it is not a 3x3 board. */
function boardOf(part) {
  const names = ["a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1"];
  const letters = part.board ?? part.when;
  const to = part.board ? names.indexOf(part.move) : Number(part.move) - 1;
  if (typeof letters !== "string" || letters.length !== 9 || !names[to]) return null;
  const below = part.board ? part.move : `weight ${part.weight}, priority ${part.priority}`;
  return { letters, to, below };
}

function picture({ letters, to, below }) {
  const size = 3 * CELL + 2;
  const rows = [0, 3, 6].map((start) => letters.slice(start, start + 3)).join("/");
  const label = `${rows}: ${below}`;
  const svg = s("svg", { class: "small", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label });
  [...letters].forEach((letter, cell) => {
    const [x, y] = [(cell % 3) * CELL + 1, Math.floor(cell / 3) * CELL + 1];
    const shown = letter === "." || letter === "*" ? "" : letter;
    svg.append(s("rect", { class: cell === to ? "to" : "", x, y, width: CELL, height: CELL }),
      s("text", { class: `of${shown}`, x: x + CELL / 2, y: y + CELL / 2 + 5 }, shown));
  });
  return h("figure", null, svg, h("figcaption", null, below));
}

/** A picture from the coordinator, which contains a title and a description, and the button that saves it. */
function drawn(markup, index, file) {
  const svg = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  const name = svg.querySelector("title").textContent;
  const label = { class: "scroll drawn", tabindex: "0", role: "group", "aria-label": name };
  return [h("div", label, document.adoptNode(svg)), savers(name, () => `${file}-${index + 1}`, { svg: () => markup })];
}

/** Pictures of all parts, or the champion's text with pictures of weights and curves. */
function shown({ text, parts, more, pictures, card, quantities }, file) {
  const candidate = candidateOf({ card, quantities });
  if (candidate) return candidate;
  const boards = Array.isArray(parts) && parts.length > 0 ? parts.map(boardOf) : [null];
  const rest = more && h("p", { class: "soft" }, "There are more parts: evoxo show prints them.");
  if (boards.includes(null)) {
    const drawings = pictures.flatMap((markup, index) => drawn(markup, index, file));
    return [h("pre", { tabindex: "0", role: "region", "aria-label": "Its parts" }, text), rest, ...drawings];
  }
  const words = text.split("\n\n")[0].replaceAll("\n", " ");
  return [h("p", null, words), h("div", { class: "boards" }, ...boards.map(picture)), rest];
}

/** The view of the champion of a replica. */
export function championView(name, first, second) {
  const own = `#/runs/${name}/champions`;
  const [arm, replica] = [Number(first) || 0, Number(second) || 0];
  const body = h("div", { class: "card" }, "Waiting for the coordinator.");
  const select = h("select", { id: "arm", onchange: () => { location.hash = `${own}/${select.value}/0`; } });
  const number = h("input", { id: "replica", type: "number", min: "0", value: replica, onchange: () => {
    location.hash = `${own}/${arm}/${Math.max(0, Number(number.value) || 0)}`;
  } });
  const play = h("a", { href: `#/play?o=${name}/${arm}/${replica}`, hidden: true }, "Play against it");
  const head = h("div", { class: "row" }, h("label", { for: "arm" }, "Arm"), select,
    h("label", { for: "replica" }, "Replica"), number, play);
  const node = h("div", { class: "inside" },
    h("p", { class: "crumbs" }, h("a", { href: `#/runs/${name}` }, name)),
    h("h1", { tabindex: "-1" }, "A champion"), h("div", { class: "card" }, head), body);
  async function load() {
    const run = await get(`/api/runs/${name}`);
    select.replaceChildren(...run.arms.map((one, index) => h("option", { value: index }, one.name)));
    select.value = String(arm);
    attribute(number, "max", (run.arms[arm]?.replicas_total ?? 1) - 1);
    const found = await get(`/api/runs/${name}/champion?arm=${arm}&replica=${replica}`);
    body.replaceChildren(...shown(found, `${name}-champion-${arm}-${replica}`).filter(Boolean));
    const told = await get(`/api/play/introduction?player=${name}/${arm}/${replica}`);
    play.hidden = !told.game;
  }
  load().catch((error) => body.replaceChildren(h("p", { class: "warning" }, `It cannot be shown: ${error.message}.`)));
  return { title: `A champion of ${name}`, node, update() {}, end() {} };
}
