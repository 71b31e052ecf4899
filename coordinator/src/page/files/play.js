// Playing: a board, two players, hints, a list of moves. The game is in the address, so it can be shared.

import { analysisOf } from "./analysis.js";
import { boardOf, cellOf, hintOf, moveAt, outcomeOf } from "./board.js";
import { matchboxes } from "./boxes.js";
import { attribute, h, keyed, show, table, text } from "./dom.js";
import { get } from "./live.js";
import { MOVER, SIDES, match, question, said } from "./match.js";
import { chooser } from "./players.js";

const THOUGHTS = [
  { name: "Move", value: (thought) => thought.move },
  { name: "Value", class: "number", value: (thought) => hintOf(thought) },
  { name: "What it says", value: (thought) => thought.says },
];

/** The game, the players and the moves in the address. */
function read(path, query) {
  const said = new URLSearchParams(query);
  const side = (name, otherwise) => said.get(name) || otherwise;
  return {
    game: path.split("/")[2] ?? "",
    who: { X: side("x", "you"), O: side("o", said.has("x") ? "you" : "") },
    moves: (said.get("m") ?? "").split(".").filter(Boolean),
  };
}

/** The board and everything around it, for one game. */
function boardView(current, again) {
  const { state } = current;
  const { game } = state;
  const status = h("p", { class: "status", role: "status" });
  const failed = h("p", { class: "warning", role: "alert", hidden: true });
  const play = (cell) => {
    const move = state.position && moveAt(game, state.position, cell);
    if (move) current.play(move.move);
  };
  const board = boardOf(game, play);
  const button = (label, onclick) => h("button", { type: "button", onclick }, label);
  const [undo, step] = [button("Undo", current.undo), button("One move", current.step)];
  const go = button("Play on", () => current.go(!state.going));
  const seen = () => state.seen?.count ?? state.moves.length;
  const by = (count) => current.show((state.at ?? state.moves.length) + count);
  const [earlier, later] = [button("Earlier", () => by(-1)), button("Later", () => by(1))];
  const replay = button("Replay", () => current.replay());
  const danger = button("Threats", () => {
    state.threats = !state.threats;
    update();
  });
  const share = button("Copy the address", async () => {
    await navigator.clipboard.writeText(location.href);
    text(share, "Copied");
    setTimeout(() => text(share, "Copy the address"), 2000);
  });
  const typed = h("input", { id: "move", autocomplete: "off", autocapitalize: "none", spellcheck: "false", size: "5" });
  const form = h("form", { class: "search", onsubmit: (event) => {
    event.preventDefault();
    const name = typed.value.trim().toLowerCase();
    const move = state.position?.legal.find((legal) => legal.move === name || game.cells[legal.cell] === name);
    show(failed, !move);
    if (!move) return text(failed, `${name || "Nothing"} is not a legal move here: choose ${legalText()}.`);
    typed.value = "";
    current.play(move.move);
  } }, h("label", { for: "move" }, "Type a move"), typed, h("button", null, "Play it"));
  const legalText = () => {
    const names = state.position?.legal.map((legal) => legal.move) ?? [];
    return names.length > 20 ? `from ${names.at(-1)} to ${names[0]}` : names.join(", ");
  };
  const moves = h("ol", { class: "moves" });
  const none = h("p", { class: "soft" }, "None yet.");
  const thoughts = table("What it thinks of each move", THOUGHTS, (thought) => thought.cell);
  const silent = h("p", { class: "soft" });
  const named = game.players.filter((one) => !["random", "filtered"].includes(one.name));
  const watched = SIDES.every((side) => state.who[side] !== "you");
  const advisers = [["", "nobody"], ...(watched ? [[MOVER, "whoever moves"]] : []),
    ...named.map((one) => [one.name, one.name]),
    ...SIDES.map((side) => [state.who[side], `${side}: ${state.who[side]}`]).filter(([who]) => who.includes("/"))];
  const adviser = h("select", { id: "adviser", onchange: () => current.advisedBy(adviser.value) },
    ...advisers.map(([value, name]) => h("option", { value }, name)));
  const key = h("p", { class: "key soft" }, ...["win", "draw", "loss"].map((outcome) =>
    h("span", { class: `for${outcome}` }, outcome)), h("span", null, "for the side that moves"));
  const judge = game.players.some((one) => one.name === "perfect") ? "perfect" : `alpha-beta:${game.plies_max}`;
  const thoughtsOf = async (so) => (await get(question("thoughts", game.name, so, judge))).thoughts;
  const analysis = analysisOf(judge, thoughtsOf, (count) => current.show(count));
  const boxes = matchboxes(state.who);
  // A network has many parts: only tables and machines for 3x3 are asked for.
  if (game.width * game.height * game.depth === 9) {
    boxes.begin(() => {
      const position = state.seen?.position ?? state.position;
      return [position, position && lastCell(position)];
    });
  }
  const main = h("section", { class: "card", "aria-label": "Board" }, status, board.node, failed, form,
    h("div", { class: "buttons" }, step, watched && go, undo, earlier, later, replay, danger,
      button("New game", again),
      // Over plain HTTP from another host there is no clipboard.
      navigator.clipboard && share));
  const beside = [
    h("section", { class: "card hints", "aria-labelledby": "hints" },
      h("div", { class: "row" }, h("h2", { id: "hints" }, "Hints"),
        h("span", { class: "controls" }, h("label", { for: "adviser" }, "from"), adviser)), key, silent,
      thoughts.node),
    h("section", { class: "card", "aria-labelledby": "moves" }, h("h2", { id: "moves" }, "Moves"), none, moves)];
  function update() {
    text(status, said(state));
    text(failed, state.error && `It cannot be done: ${state.error}.`);
    show(failed, Boolean(state.error));
    attribute(go, "aria-pressed", state.going);
    text(step, watched ? "One move" : "Ask again");
    show(step, !current.over() && (watched || Boolean(state.error && state.position && !current.human())));
    show(go, !current.over());
    attribute(undo, "disabled", state.moves.length ? null : "");
    attribute(earlier, "disabled", (state.at ?? state.moves.length) > 0 ? null : "");
    attribute(later, "disabled", state.at === null ? "" : null);
    show(form, Boolean(state.position) && !state.seen && !current.over() && current.human());
    attribute(replay, "disabled", state.moves.length > 0 && !state.going ? null : "");
    attribute(danger, "aria-pressed", String(Boolean(state.threats)));
    show(none, state.moves.length === 0);
    show(key, state.thoughts.some(outcomeOf));
    analysis.update(state.moves, state.position?.result ?? null);
    const items = state.moves.map((move, index) => ({ index, move, why: state.whys[index] }));
    keyed(moves, items, ({ index, move, why }) => `${index} ${move} ${why}`, ({ index, move, why }) => {
      const reason = why ? h("span", { class: "soft" }, ` ${why}`) : "";
      const label = `${SIDES[index % 2]} ${move}`;
      const to = h("button", { type: "button", class: "to", onclick: () => current.show(index + 1) },
        h("strong", null, label));
      return { node: h("li", null, to, reason), update() {} };
    });
    show(thoughts.node, state.thoughts.length > 0);
    text(silent, state.silent && `There are no hints here: ${state.silent}.`);
    thoughts.update(state.thoughts);
    const position = state.seen?.position ?? state.position;
    if (!position) return;
    const options = { free: !state.seen && !current.over() && current.human(), threats: state.threats };
    board.update(position, lastCell(position), state.thoughts, options);
    boxes.update(position, lastCell(position));
  }
  const lastCell = (position) => cellOf(game, position, state.moves[seen() - 1]);
  return { main, beside, below: [boxes.node, analysis.node], update, end: analysis.end };
}

/** The address of a game. */
function address({ game, who, moves }) {
  const played = moves.length ? `&m=${moves.join(".")}` : "";
  return `#/play/${game.name}?x=${who.X}&o=${who.O}${played}`;
}

export function playView(path, query) {
  const heading = h("h1", { tabindex: "-1" }, "Play");
  const [setup, place, beside, below] = [h("div"), h("div"), h("div"), h("div")];
  const wall = h("a", { hidden: true }, "A large board for a wall or a classroom");
  const node = h("div", { class: "inside wide" }, h("div", { class: "row" }, heading, wall),
    h("div", { class: "match" }, h("div", null, place, below), h("div", { class: "beside" }, setup, beside)));
  let [current, shown, panel, ended] = [null, null, null, false];

  function begin(game, who, moves) {
    current?.end();
    shown?.end();
    const changed = () => {
      if (ended || current !== own) return;
      history.replaceState(null, "", address(own.state));
      shown.update();
    };
    const own = match(game, who, moves, changed);
    shown = boardView(own, () => begin(game, own.state.who, []));
    current = own;
    attribute(wall, "href", `#/wall/${game.name}`);
    show(wall, true);
    place.replaceChildren(shown.main);
    beside.replaceChildren(...shown.beside);
    below.replaceChildren(...shown.below);
    own.look(own.state.moves);
  }

  async function start() {
    const { games } = await get("/api/play");
    const asked = read(path, query);
    let wanted = asked.game;
    // A champion determines the game, and possibly the only side that it plays.
    for (const side of SIDES) {
      if (!asked.who[side].includes("/")) continue;
      const told = await get(`/api/play/introduction?player=${asked.who[side].split(":")[0]}`);
      if (!told.game) throw new Error(told.why);
      wanted ||= told.game;
      if (told.side && told.side !== side) {
        const other = side === "X" ? "O" : "X";
        [asked.who[side], asked.who[other]] = [asked.who[other] || "you", asked.who[side]];
        break;
      }
    }
    const game = games.find((one) => one.name === (wanted || games[0].name));
    if (!game) throw new Error(`there is no game ${wanted}`);
    const strong = game.players.find((one) => one.name === "perfect") ?? game.players.find((one) => one.looks_ahead);
    asked.who.O ||= strong.name;
    panel = chooser(games, game, asked.who, begin);
    if (ended) return;
    setup.replaceChildren(panel.node);
    begin(game, asked.who, asked.moves);
  }

  const failed = ({ message }) => h("p", { class: "banner" }, `This cannot be played: ${message}.`);
  start().catch((error) => place.replaceChildren(failed(error)));
  return { title: "Play", node, update: () => panel?.update(), end() {
    ended = true;
    current?.end();
    shown?.end();
  } };
}
