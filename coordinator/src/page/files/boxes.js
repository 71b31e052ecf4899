// MENACE as it stood on a table: a matchbox for each board, with a bead for each draw that makes a move.

import { h, s, show, text } from "./dom.js";
import { count, counted, number, percent } from "./format.js";
import { get } from "./live.js";

/** The most boxes of a side. */
const BOXES_MAX = 400;
/** The cells of a board as texts from the top left, by their names. */
const CELLS = ["a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1"];
/**
 * The images of a board: for each, the cell that comes to each place. A board that is its own image has several, and
 * the first one that leads to its box is the one with which the machine draws. So they are in the machine's order.
 */
const IMAGES = [false, true].flatMap((turned) => [0, 1, 2, 3].map((mirrored) => {
  const flip = (at, axis) => (mirrored >> axis & 1 ? 2 - at : at);
  const image = [];
  for (let cell = 0; cell < 9; cell += 1) {
    const [column, row] = [cell % 3, Math.floor(cell / 3)];
    image[flip(turned ? row : column, 0) + 3 * flip(turned ? column : row, 1)] = cell;
  }
  return image;
}));
/** The most beads of a cell that are drawn: of fuller boxes, each drawn bead stands for several. */
const BEADS_MAX = 24;
const [CELL, SMALL] = [96, 14];

/** The box of a board, with its beads by the cells of this board; null if it has none. */
export function boxOf(boxes, board) {
  for (const image of IMAGES) {
    const found = boxes.get(image.map((cell) => board[cell]).join(""));
    if (!found) continue;
    const beads = new Array(9).fill(0);
    image.forEach((cell, place) => { beads[cell] = found.beads[place]; });
    return { ...found, beads };
  }
  return null;
}

/** The boxes of the answer about a champion; null if it has no matchboxes. */
export function boxesOf({ parts }) {
  if (!Array.isArray(parts) || !parts[0]?.beads || !parts[0].board) return null;
  const one = ({ board, beads }) => [board, { board, beads: CELLS.map((cell) => beads[cell] ?? 0) }];
  return new Map(parts.map(one));
}

const bead = (cell) => `bead${cell}`;

/** How many beads a drawn one stands for. */
const each = (beads) => Math.max(1, Math.max(...beads) / BEADS_MAX);

/** The beads of a cell in rows, within a square with this corner. Each stands for `worth` beads. */
function pile(beads, cell, worth, x, y) {
  const shown = beads > 0 ? Math.max(1, Math.round(beads / worth)) : 0;
  const across = Math.ceil(Math.sqrt(Math.max(1, worth > 1 ? BEADS_MAX : shown)));
  const step = Math.min(22, (CELL - 34) / across);
  return Array.from({ length: shown }, (_, at) => s("circle", { class: `pearl ${bead(cell)}`,
    cx: x + CELL / 2 + ((at % across) - (across - 1) / 2) * step,
    cy: y + 10 + step / 2 + Math.floor(at / across) * step, r: step * 0.42 }));
}

/** A box large: its board with the stones, and the beads of each move. `drawn` is the cell of a bead that was drawn. */
function large({ board, beads }, drawn = -1) {
  const total = beads.reduce((sum, one) => sum + one, 0);
  const size = 3 * CELL + 2;
  const words = beads.map((of, cell) => of && `${CELLS[cell]} ${of}`).filter(Boolean).join(", ");
  const svg = s("svg", { class: "box", viewBox: `0 0 ${size} ${size + 18}`, role: "img",
    "aria-label": `The box of ${board.match(/.../g).join("/")}: ${words || "no beads"}` },
  s("rect", { class: "tray", x: 0, y: 0, width: size, height: size + 18, rx: 8 }));
  [...board].forEach((letter, cell) => {
    const [x, y] = [1 + (cell % 3) * CELL, 1 + Math.floor(cell / 3) * CELL];
    const [width, height] = [CELL - 6, CELL - 6];
    const look = cell === drawn ? "slot drawn" : "slot";
    svg.append(s("rect", { class: look, x: x + 3, y: y + 3, width, height, rx: 6 }));
    if (letter !== ".") {
      svg.append(s("text", { class: `stone of${letter}`, x: x + CELL / 2, y: y + CELL / 2 + 18 }, letter));
      return;
    }
    svg.append(...pile(beads[cell], cell, each(beads), x, y), s("text", { x: x + CELL / 2, y: y + CELL - 10 },
      beads[cell] > 0 ? `${count(beads[cell])} · ${percent(beads[cell], total)}` : "none"));
  });
  return svg;
}

/** A box small: its board, the beads as a coloured share of each cell, and its number of beads. */
function small({ board, beads }) {
  const total = beads.reduce((sum, one) => sum + one, 0);
  const size = 3 * SMALL + 2;
  const svg = s("svg", { class: "small", viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" });
  [...board].forEach((letter, cell) => {
    const [x, y] = [1 + (cell % 3) * SMALL, 1 + Math.floor(cell / 3) * SMALL];
    svg.append(s("rect", { x, y, width: SMALL, height: SMALL }));
    if (letter !== ".") svg.append(s("text", { class: `of${letter}`, x: x + SMALL / 2, y: y + SMALL - 3 }, letter));
    else if (beads[cell] > 0) {
      svg.append(s("circle", { class: `pearl ${bead(cell)}`, cx: x + SMALL / 2, cy: y + SMALL / 2,
        r: 1.5 + (SMALL / 2 - 2.5) * Math.sqrt(beads[cell] / total) }));
    }
  });
  return svg;
}

const stones = (board) => [...board].filter((letter) => letter !== ".").length;

/** All boxes in groups by their number of stones. `choose(box)` is called when one is chosen. */
function wall(boxes, choose) {
  const groups = new Map();
  for (const box of boxes.values()) {
    const key = stones(box.board);
    groups.set(key, [...(groups.get(key) ?? []), box]);
  }
  const one = (box) => h("button", { type: "button", class: "matchbox", "data-board": box.board,
    "aria-label": `Box ${box.board.match(/.../g).join("/")}`, onclick: () => choose(box) }, small(box));
  const title = (key, all) => `Move ${key + 1} of the game: ${count(all.length)} ${all.length === 1 ? "box" : "boxes"}`;
  return [...groups].sort(([a], [b]) => a - b).flatMap(([key, all]) => [
    h("h3", null, title(key, all)), h("div", { class: "wall" }, ...all.map(one))]);
}

/**
 * The matchboxes of the players of a match: the box of the shown position large, and all boxes on request. They are
 * fetched when a champion turns out to have matchboxes.
 */
export function matchboxes(who) {
  const named = ["X", "O"].filter((side) => who[side].includes("/"));
  const [title, place, lines, said] = [h("h2", { id: "boxes" }, "Matchboxes"), h("div"), h("div"),
    h("p", { class: "soft", role: "status" })];
  const all = h("details", { ontoggle: () => all.open && open() }, h("summary", null, "All boxes"), lines);
  const node = h("section", { class: "card matchboxes", "aria-labelledby": "boxes", hidden: true }, title, said, place,
    all);
  const machines = new Map();
  let [latest, shown] = [null, ""];

  /** Shows a box that is not that of the position. */
  function choose(box) {
    text(said, `The box that you chose. ${about(box)}`);
    place.replaceChildren(large(box));
    place.scrollIntoView({ block: "nearest" });
    shown = "";
  }

  const about = ({ beads }) => `${counted(beads.reduce((sum, one) => sum + one, 0), "bead")}: the machine draws one, `
    + `and its colour says the move.${each(beads) > 1 ? ` Each drawn here stands for ${number(each(beads), 2)}.` : ""}`;

  function open() {
    const parts = [...machines].flatMap(([side, boxes]) => [
      ...(machines.size > 1 ? [h("p", null, `The machine that plays ${side}`)] : []), ...wall(boxes, choose)]);
    lines.replaceChildren(...parts);
    mark();
  }

  function mark() {
    for (const button of lines.querySelectorAll("button")) {
      button.classList.toggle("here", button.dataset.board === latest);
    }
  }

  /** The box of the position or, if its side has no boxes, the box from which the last move was drawn. */
  function update(position, last) {
    if (!position || machines.size === 0) return;
    const key = `${position.board} ${machines.size}`;
    if (key === shown) return;
    shown = key;
    const own = machines.has(position.to_move);
    const before = [...position.board].map((letter, cell) => (cell === last ? "." : letter)).join("");
    const [board, side] = own ? [position.board, position.to_move] : [before, position.board[last]];
    const box = machines.has(side) ? boxOf(machines.get(side), board) : null;
    latest = box?.board ?? null;
    place.replaceChildren(...(box ? [large({ ...box, board }, own ? -1 : last)] : []));
    const what = own ? "The box of this position, turned as the board is."
      : `The box from which ${side} drew ${CELLS[last]}, turned as the board is.`;
    text(said, box ? `${what} ${about(box)}` : `${[...machines.keys()].join(" and ")} plays with matchboxes. This `
      + "position has no box with beads: there the machine takes any empty cell.");
    mark();
  }

  async function begin(current) {
    for (const side of named) {
      const [run, arm, replica] = who[side].split(":")[0].split("/");
      const path = `/api/runs/${run}/champion?arm=${arm}&replica=${replica}&parts=${BOXES_MAX}`;
      const boxes = boxesOf(await get(path).catch(() => ({ parts: null })));
      if (boxes) machines.set(side, boxes);
    }
    const total = [...machines.values()].reduce((sum, boxes) => sum + boxes.size, 0);
    show(node, machines.size > 0);
    text(all.querySelector("summary"), `All ${count(total)} boxes with beads`);
    update(...current());
  }
  return { node, begin, update };
}
