// A board to play on: each layer is a grid of buttons, and several layers also have a rack.

import { attribute, h, text } from "./dom.js";
import { rackOf } from "./rack.js";
import { linesOf, threats } from "./threats.js";

/** The column of a cell, its row from the top of the layer, and its layer from the top. */
function placeOf(game, cell) {
  const floor = game.width * game.height;
  const row = Math.floor(cell / game.width) % game.height;
  return { column: cell % game.width, row, layer: Math.floor(cell / floor) };
}

/** The move that a click on this cell means. If stones fall, any cell of the pile means the same move. */
export function moveAt(game, position, cell) {
  const there = placeOf(game, cell);
  return position.legal.find((legal) => {
    if (!game.gravity) return legal.cell === cell;
    const at = placeOf(game, legal.cell);
    return at.column === there.column && (game.depth === 1 || at.row === there.row);
  });
}

/** The cell of a move that was made, or -1. If stones fall, the move names a pile: the cell of its highest stone. */
export function cellOf(game, position, move) {
  if (!move) return -1;
  const named = game.cells.map((cell, index) => (cell.startsWith(move) ? index : -1));
  return named.find((index) => index >= 0 && position.board[index] !== ".") ?? -1;
}

/** The layers as grids. `play(cell)` is called when a cell is chosen, `aim(cell)` when the pointer is over it. */
function layers(game, play, aim) {
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
        tabindex: index === 0 ? "0" : "-1", onclick: () => play(cell), onkeydown: (event) => keys(cell, event),
        onpointerenter: () => aim(cell), onpointerleave: () => aim(null), onfocus: () => aim(cell),
        onblur: () => aim(null) }, letter, hint);
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

/** A board of a game. `update` shows a position, the cell of the last move, and hints for the next one. */
export function boardOf(game, play) {
  const lines = linesOf(game);
  let [shown, free] = [null, false];
  const aim = (cell) => {
    const move = cell !== null && shown && free ? moveAt(game, shown, cell) : null;
    const target = move?.cell ?? null;
    grid.cells.forEach(({ node }, index) => attribute(node, "data-aimed", index === target ? shown.to_move : null));
    piles?.aim(target, shown?.to_move);
  };
  const grid = layers(game, play, aim);
  const piles = game.depth > 1 ? rackOf(game, play, aim) : null;
  const node = h("div", { class: "table" }, piles?.node, grid.node);
  /** `options.free` allows a move by a person, and `options.threats` marks threats. */
  function update(position, last, thoughts, options) {
    if (position !== shown) aim(null);
    [shown, free] = [position, options.free];
    const most = Math.max(...thoughts.map((thought) => thought.value ?? 0));
    const marked = options.threats ? threats(lines, position.board) : null;
    [...position.board].forEach((letter, cell) => {
      const stone = letter === "." ? "" : letter;
      const thought = thoughts.find((one) => one.cell === cell);
      const move = moveAt(game, position, cell);
      const threat = ["X", "O"].filter((side) => marked?.[side].has(cell)).join("");
      const states = [stone && `is${stone}`, cell === last && "last", position.line.includes(cell) && "won",
        thought && `for${outcomeOf(thought) || "value"}`,
        thought && (thought.value === null || thought.value === most) && "best", !move && "fixed",
        threat && `threat${threat}`, game.gravity && move?.cell === cell && "next"];
      const classes = states.filter(Boolean).join(" ");
      const { node: button, letter: sign, hint } = grid.cells[cell];
      attribute(button, "class", `cell ${classes}`);
      text(sign, stone);
      text(hint, thought ? hintOf(thought) : "");
      const words = [stone || "empty", cell === last && "just played", position.line.includes(cell) && "in the line",
        threat && `would complete a line of ${threat.split("").join(" and ")}`, thought && thought.says];
      attribute(button, "aria-label", `${game.cells[cell]}: ${words.filter(Boolean).join(", ")}`);
      attribute(button, "aria-disabled", move ? null : "true");
      piles?.put(cell, stone, classes);
    });
  }
  return { node, update };
}

/** What a thought says about the end of the game, for the side that moves: "win", "draw", "loss", or "" if unknown. */
export function outcomeOf({ says }) {
  if (/^it (has worked out a win|sees a win|wins)/.test(says)) return "win";
  if (/^it (has worked out a draw|draws)/.test(says)) return "draw";
  return /^it (has worked out that it (will|may) lose|sees a loss|loses)/.test(says) ? "loss" : "";
}

/** A thought in at most four characters. */
export function hintOf(thought) {
  const outcome = outcomeOf(thought);
  if (outcome) return outcome;
  if (thought.value === null) return "●";
  const { value } = thought;
  const size = Math.abs(value);
  const digits = Number.isInteger(value) || size >= 10 ? 0 : size >= 0.995 ? 1 : 2;
  const shown = value.toFixed(digits).replace(/^(-?)0\./, "$1.");
  if (Number(shown) === 0) return "0";
  return (shown.length > 5 ? value.toExponential(0).replace("e+", "e") : shown).replace("-", "−");
}
