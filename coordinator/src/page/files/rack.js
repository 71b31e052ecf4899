// A rack of piles, seen from above at an angle: dragging turns it. Keyboards and screen readers use the layers instead.

import { attribute, h, s, text } from "./dom.js";

/** Pixels: from pile to pile across and towards the viewer, from stone to stone, and the size of a stone. */
const SIZE = { across: 66, down: 36, up: 29, stone: 14.5 };
const [WIDTH, HEIGHT] = [400, 350];
/** The turn at first, at which no rod hides another, in radians; and how far a drag of one pixel turns. */
const [FIRST, TURN] = [0.3, 0.008];
/** A press that moves less than this is a click. */
const CLICK_PX = 6;

/**
 * The rack of a game with four layers. `play(cell)` is called when a pile is chosen, `aim(cell)` when the pointer is
 * over one or, with null, leaves it.
 */
export function rackOf(game, play, aim) {
  const floor = game.width * game.height;
  let turn = FIRST;
  const at = (u, v) => {
    const [x, y] = [u * Math.cos(turn) - v * Math.sin(turn), u * Math.sin(turn) + v * Math.cos(turn)];
    return [WIDTH / 2 + SIZE.across * x, HEIGHT * 0.675 + SIZE.down * y];
  };
  const middle = [(game.width - 1) / 2, (game.height - 1) / 2];
  const base = s("path", { class: "base" });
  const piles = [];
  const [field, front, labels] = [s("g"), s("g"), []];
  const stones = [];
  for (let row = 0; row < game.height; row += 1) {
    for (let column = 0; column < game.width; column += 1) {
      const lowest = ((game.depth - 1) * game.height + row) * game.width + column;
      const rod = s("path", { class: "rod", d: `M0 0v${-SIZE.up * game.depth - 6}` });
      const parts = Array.from({ length: game.depth }, (_, high) => {
        const [cell, cy] = [lowest - high * floor, -SIZE.up * (high + 0.5)];
        const round = { cy, rx: SIZE.stone + 2.5, ry: SIZE.stone };
        const letter = s("text", { y: cy + 4.5 });
        const group = s("g", { class: "bead" }, s("ellipse", { ...round, class: "body" }),
          s("ellipse", { ...round, class: "shine", fill: "url(#shine)" }), letter);
        stones[cell] = { group, letter, cy };
        return group;
      });
      const ghost = s("ellipse", { class: "ghost", rx: SIZE.stone + 2.5, ry: SIZE.stone,
        hidden: true });
      const node = s("g", { class: "pile" }, rod, ghost, ...parts);
      piles.push({ node, ghost, lowest, u: column - middle[0], v: row - middle[1] });
    }
    labels.push({ node: s("text", { class: "axis" }, game.height - row), u: middle[0] + 0.85, v: row - middle[1] });
  }
  for (let column = 0; column < game.width; column += 1) {
    labels.push({ node: s("text", { class: "axis" }, "abcdefg"[column]), u: column - middle[0], v: middle[1] + 0.9 });
  }
  front.append(...labels.map((label) => label.node));
  const shine = s("radialGradient", { id: "shine", cx: "35%", cy: "28%", r: "75%" },
    s("stop", { offset: "0%", class: "light" }), s("stop", { offset: "45%", class: "clear" }),
    s("stop", { offset: "100%", class: "shade" }));
  const node = s("svg", { class: "rack", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    s("defs", null, shine), base, front, field);

  /** Puts everything in its place: piles further away are drawn first. */
  function arrange() {
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) =>
      at(x * (middle[0] + 0.55), y * (middle[1] + 0.55)).map((value) => value.toFixed(1)).join(" "));
    attribute(base, "d", `M${corners.join("L")}Z`);
    for (const { node: one, u, v } of [...piles, ...labels]) {
      const [x, y] = at(u, v);
      attribute(one, "transform", `translate(${x.toFixed(1)} ${(y + (one.tagName === "text" ? 5 : 0)).toFixed(1)})`);
    }
    const far = ({ u, v }) => at(u, v)[1];
    field.replaceChildren(...[...piles].sort((one, other) => far(one) - far(other)).map((pile) => pile.node));
  }

  /** The pile whose rod is nearest to the pointer; null if none is near. */
  function pileAt(event) {
    const { left, top, width } = node.getBoundingClientRect();
    const scale = WIDTH / width;
    const [x, y] = [(event.clientX - left) * scale, (event.clientY - top) * scale];
    const far = ({ u, v }) => {
      const [rodX, rodY] = at(u, v);
      const above = Math.max(0, y - rodY) + Math.max(0, rodY - SIZE.up * game.depth - y);
      return Math.hypot(x - rodX, above);
    };
    const nearest = piles.reduce((best, pile) => (far(pile) < far(best) ? pile : best));
    return far(nearest) <= SIZE.across / 2 ? nearest : null;
  }

  let [from, dragged, over] = [null, 0, null];
  const point = (pile) => {
    if (pile !== over) aim(pile?.lowest ?? null);
    over = pile;
  };
  node.addEventListener("click", (event) => {
    const pile = pileAt(event);
    if (pile && dragged < CLICK_PX) play(pile.lowest);
  });
  node.addEventListener("pointerleave", () => point(null));
  node.addEventListener("pointerdown", (event) => {
    [from, dragged] = [event.clientX, 0];
  });
  node.addEventListener("pointermove", (event) => {
    if (event.buttons === 0) from = null;
    if (from === null) return point(pileAt(event));
    dragged += Math.abs(event.clientX - from);
    turn -= (event.clientX - from) * TURN;
    from = event.clientX;
    point(null);
    arrange();
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { from = null; });
  arrange();
  return {
    node: h("div", { class: "turned" }, node, h("p", { class: "soft", "aria-hidden": "true" }, "Drag to turn")),
    /** Shows the stone of a cell. */
    put(cell, letter, classes) {
      attribute(stones[cell].group, "class", `bead ${classes}`);
      text(stones[cell].letter, letter);
    },
    /** Shows a stone of this side that falls to a cell, or with null none. */
    aim(cell, side) {
      if (cell === null) over = null;
      for (const { ghost, lowest, node: pile } of piles) {
        const own = cell !== null && lowest % floor === cell % floor;
        attribute(ghost, "hidden", own ? null : "");
        if (!own) continue;
        attribute(ghost, "cy", stones[cell].cy);
        attribute(ghost, "class", `ghost is${side}`);
        // An element that is put in again begins its animation again.
        pile.insertBefore(ghost, pile.children[1]);
      }
    },
  };
}
