// The analysis of a game: how a judge values each position, and where the game was lost.

import { outcomeOf } from "./board.js";
import { attribute, h, s, show, text } from "./dom.js";

const [WIDTH, HEIGHT, EDGE, LEFT] = [640, 170, 16, 64];
/** A value that is not exact is drawn this far from the middle at most. */
const INEXACT_MAX = 0.9;
const CERTAIN = { win: 1, draw: 0, loss: -1 };
const SIDES = ["X", "O"];

/** The number of a move's thought, from -1 for a loss to 1 for a win, for the side that moves. */
function valueOf(thought) {
  const outcome = outcomeOf(thought);
  return outcome ? CERTAIN[outcome] : Math.max(-INEXACT_MAX, Math.min(INEXACT_MAX, thought.value ?? 0));
}

/**
 * The judged moves of a game: for each move its side, its value and that of the best move, with the names of best
 * moves. The thoughts of a position are those of its legal moves. Values are those of the side that moves.
 */
export function judged(moves, thoughts) {
  return moves.map((move, index) => {
    const all = thoughts[index].map((thought) => ({ move: thought.move, value: valueOf(thought) }));
    const best = Math.max(...all.map((one) => one.value));
    const own = all.find((one) => one.move === move)?.value ?? best;
    const kept = all.filter((one) => one.value === best).map((one) => one.move);
    return { number: index + 1, move, side: SIDES[index % 2], value: own, best, kept };
  });
}

const WORDS = { 1: "a win", 0: "a draw", "-1": "a loss" };
const word = (value) => WORDS[value] ?? `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;

/** The move that lost the game, or the largest mistake of a game that nobody lost; null if there is none. */
export function turningPoint(moves, result) {
  const loser = { X: "O", O: "X" }[result];
  const mistakes = moves.filter((one) => one.best - one.value > 1e-9 && (!loser || one.side === loser));
  const fatal = mistakes.filter((one) => one.value === -1 && one.best > -1).at(-1);
  return fatal ?? mistakes.sort((one, other) => other.best - other.value - (one.best - one.value))[0] ?? null;
}

/** The sentence about the turning point. */
export function sentence(moves, result) {
  const point = turningPoint(moves, result);
  if (!point) return result && result !== "draw" ? "The judge sees no mistake." : "No move lost anything.";
  const lost = { X: "O", O: "X" }[result] === point.side;
  const kept = point.kept.slice(0, 3).join(" or ");
  const what = lost ? "Here it was lost" : "The largest mistake";
  return `${what}: move ${point.number}, ${point.side} ${point.move}. It turned ${word(point.best)} into `
    + `${word(point.value)} for ${point.side}; ${kept} kept ${word(point.best)}.`;
}

/** The picture of the values after each move, for X. `go(count)` is called when a point is chosen. */
function picture(moves, point, go) {
  const x = (number) => LEFT + (number / Math.max(1, moves.length)) * (WIDTH - LEFT - EDGE);
  const y = (value) => HEIGHT / 2 - value * (HEIGHT / 2 - EDGE);
  const ofX = (one) => (one.side === "X" ? one.value : -one.value);
  const first = moves[0] ? moves[0].best : 0;
  const line = [[x(0), y(first)], ...moves.map((one) => [x(one.number), y(ofX(one))])];
  const path = line.map(([px, py], index) => `${index ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
  const names = [[1, "X wins"], [0, "draw"], [-1, "O wins"]].flatMap(([value, name]) => [
    s("path", { class: "grid", d: `M${LEFT} ${y(value)}H${WIDTH - EDGE}` }),
    s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, name)]);
  const dot = (one) => s("circle", { class: `dot is${one.side} ${one === point ? "fatal" : ""}`, cx: x(one.number),
    cy: y(ofX(one)), r: one === point ? 8 : 4.5, onclick: () => go(one.number) },
  s("title", null, `${one.number}. ${one.side} ${one.move}: ${word(one.value)} for ${one.side}`));
  return s("svg", { class: "picture evaluation", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": "The value of the position after each move, for X" }, ...names,
  s("path", { class: "line c6", d: path }), ...moves.map(dot));
}

/**
 * The section with the analysis of a game. `ask(moves)` returns the judge's thoughts about a position, `go(count)`
 * shows the position after so many moves. `update` takes the moves and the result of the game.
 */
export function analysisOf(judge, ask, go) {
  const told = h("p", { class: "conclusion", role: "status" });
  const [place, about] = [h("div"), h("p", { class: "soft" })];
  const button = h("button", { type: "button", onclick: () => run() }, "Analyse the game");
  const look = h("button", { type: "button", class: "small" }, "Show the position before it");
  const node = h("section", { class: "card", "aria-labelledby": "analysis" },
    h("div", { class: "row" }, h("h2", { id: "analysis" }, "Analysis"), button), about, told, look, place);
  let [moves, result, key, turn] = [[], null, "", 0];
  const clear = () => {
    turn += 1;
    place.replaceChildren();
    text(told, "");
    show(look, false);
  };
  async function run() {
    clear();
    const own = turn;
    const thoughts = [];
    try {
      for (let count = 0; count < moves.length; count += 1) {
        text(told, `${judge} looks at move ${count + 1} of ${moves.length}.`);
        thoughts.push(await ask(moves.slice(0, count)));
        if (own !== turn) return;
      }
    } catch (error) {
      if (own === turn) text(told, `The game cannot be analysed: ${error.message}.`);
      return;
    }
    const all = judged(moves, thoughts);
    const point = turningPoint(all, result);
    text(told, sentence(all, result));
    look.onclick = () => go(point.number - 1);
    show(look, Boolean(point));
    place.replaceChildren(picture(all, point, go));
  }
  text(about, `${judge} values each position. Choose a point to see the position after that move.`);
  clear();
  return {
    node,
    update(nextMoves, nextResult) {
      const next = nextMoves.join(".");
      [moves, result] = [nextMoves, nextResult];
      if (next !== key) clear();
      key = next;
      attribute(button, "disabled", moves.length > 0 ? null : "");
    },
    end: () => { turn += 1; },
  };
}
