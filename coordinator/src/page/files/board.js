// A board to play on: each layer as a grid of buttons, and for several layers also a rack.

import { attribute, h, s, text } from "./dom.js";

/** Pixels of the rack: the steps between piles along a row and from row to row, and the size of a stone. */
const PILE = { across: 60, tilt: 7, skew: 15, down: 40, up: 23, stone: 11.5 };

/** The position of a cell: its column, its row from the top of the layer, and its layer from the top. */
function placeOf(game, cell) {
  const floor = game.width * game.height;
  const row = Math.floor(cell / game.width) % game.height;
  return { column: cell % game.width, row, layer: Math.floor(cell / floor) };
}

/** The move for a click on this cell. If stones fall, any cell of a pile will do. */
export function moveAt(game, position, cell) {
  const there = placeOf(game, cell);
  return position.legal.find((legal) => {
    if (!game.gravity) return legal.cell === cell;
    const at = placeOf(game, legal.cell);
    return at.column === there.column && (game.depth === 1 || at.row === there.row);
  });
}

/** The layers as grids. `play(cell)` is called when a cell is chosen. */
function layers(game, play) {
  const floor = game.width * game.height;
  const cells = [];
  const focus = (cell) => {
    if (!cells[cell]) return;
    const first = Math.floor(cell / floor) * floor;
    for (let other = first; other < first + floor; other += 1) attribute(cells[other].node, "tabindex", "-1");
    attribute(cells[cell].node, "tabindex", "0");
    cells[cell].node.focus();
  };
  const keys = (cell, event) => {
    const { column, row } = placeOf(game, cell);
    const free = { ArrowLeft: column > 0, ArrowRight: column < game.width - 1, ArrowUp: row > 0,
      ArrowDown: row < game.height - 1, PageUp: true, PageDown: true };
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -game.width, ArrowDown: game.width, PageUp: -floor,
      PageDown: floor };
    if (!(event.key in step)) return;
    event.preventDefault();
    if (free[event.key]) focus(cell + step[event.key]);
  };
  const groups = [];
  for (let layer = game.depth - 1; layer >= 0; layer -= 1) {
    const own = Array.from({ length: floor }, (_, index) => {
      const cell = layer * floor + index;
      const [letter, hint] = [h("span", { class: "stone" }), h("span", { class: "hint" })];
      const node = h("button", { type: "button", class: "cell", "aria-label": game.cells[cell],
        tabindex: index === 0 ? "0" : "-1",
        onclick: () => play(cell), onkeydown: (event) => keys(cell, event) }, letter, hint);
      cells[cell] = { node, letter, hint };
      return node;
    });
    const number = game.depth - layer;
    const which = { 1: ", lowest", [game.depth]: ", top" }[number] ?? "";
    const name = game.depth > 1 ? `Layer ${number}${which}` : "Board";
    const rows = Array.from({ length: game.height }, (_, row) =>
      h("div", { class: "cells" }, ...own.slice(row * game.width, (row + 1) * game.width)));
    groups.push(h("div", { class: "layer", role: "group", "aria-label": name },
      game.depth > 1 && h("p", { class: "soft", "aria-hidden": "true" }, `${number}${which}`), ...rows));
  }
  const node = h("div", { class: `layers d${game.depth} w${game.width}` }, ...groups);
  return { node, cells };
}

/** A rack of piles, seen from above at an angle. Keyboards and screen readers use the layers instead. */
function rack(game, play) {
  const [left, right] = [52, PILE.across * (game.width - 1) + PILE.skew * (game.height - 1)];
  const top = PILE.up * game.depth + 16;
  const [width, height] = [left + right + 66, top + PILE.down * (game.height - 1) + PILE.tilt * (game.width - 1) + 48];
  // The rods are evenly spaced, so none hides another.
  const at = (column, row) => [left + PILE.across * column + PILE.skew * (game.height - 1 - row),
    top + PILE.down * row + PILE.tilt * column];
  const corner = (column, row) => at(column, row).join(" ");
  const [w, d] = [game.width - 0.45, game.height - 0.5];
  const base = `M${corner(-0.55, -0.5)}L${corner(w, -0.5)}L${corner(w, d)}L${corner(-0.55, d)}Z`;
  const node = s("svg", { class: "rack", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    s("path", { class: "base", d: base }));
  const stones = [];
  const floor = game.width * game.height;
  for (let row = 0; row < game.height; row += 1) {
    for (let column = 0; column < game.width; column += 1) {
      const [x, y] = at(column, row);
      const lowest = ((game.depth - 1) * game.height + row) * game.width + column;
      const parts = Array.from({ length: game.depth }, (_, high) => {
        const centre = y - PILE.up * (high + 0.5);
        const cell = lowest - high * floor;
        const round = s("ellipse", { cx: x, cy: centre, rx: PILE.stone + 2, ry: PILE.stone });
        const letter = s("text", { x, y: centre + 4.5 });
        stones[cell] = { group: s("g", { class: "bead", onclick: () => play(cell) }, round, letter), letter };
        return stones[cell].group;
      });
      node.append(s("path", { class: "rod", d: `M${x} ${y}v${-PILE.up * game.depth - 5}` }), ...parts);
    }
    const [x, y] = at(game.width - 0.35, row);
    node.append(s("text", { class: "axis", x: x + 8, y: y + 5 }, game.height - row));
  }
  for (let column = 0; column < game.width; column += 1) {
    const [x, y] = at(column, game.height - 0.5);
    node.append(s("text", { class: "axis", x: x - 2, y: y + 18 }, "abcdefg"[column]));
  }
  return { node, stones };
}

/** A board of a game. `update` shows a position, the cell of the last move, and evaluations of the next moves. */
export function boardOf(game, play) {
  const grid = layers(game, play);
  const piles = game.depth > 1 ? rack(game, play) : null;
  const node = h("div", { class: "table" }, piles?.node, grid.node);
  function update(position, last, thoughts) {
    const most = Math.max(...thoughts.map((thought) => thought.value ?? 0));
    [...position.board].forEach((letter, cell) => {
      const shown = letter === "." ? "" : letter;
      const thought = thoughts.find((one) => one.cell === cell);
      const move = moveAt(game, position, cell);
      const states = [shown && `is${shown}`, cell === last && "last", position.line.includes(cell) && "won",
        thought && (thought.value === null || thought.value === most) && "best", !move && "fixed",
        game.gravity && move?.cell === cell && "next"];
      const classes = states.filter(Boolean).join(" ");
      const { node: button, letter: stone, hint } = grid.cells[cell];
      attribute(button, "class", `cell ${classes}`);
      text(stone, shown);
      text(hint, thought ? hintOf(thought).replace(/^(−?)0\./, "$1.") : "");
      const words = [shown || "empty", cell === last && "just played", position.line.includes(cell) && "in the line",
        thought && thought.says];
      attribute(button, "aria-label", `${game.cells[cell]}: ${words.filter(Boolean).join(", ")}`);
      attribute(button, "aria-disabled", move ? null : "true");
      if (!piles) return;
      attribute(piles.stones[cell].group, "class", `bead ${classes}`);
      text(piles.stones[cell].letter, shown);
    });
  }
  return { node, update };
}

/** The short text of an evaluation. */
export function hintOf(thought) {
  if (thought.value === null) return "●";
  if (Number.isInteger(thought.value)) return String(thought.value).replace("-", "−");
  return thought.value.toFixed(2).replace("-", "−");
}
