// Playing: a board, two players, hints, a list of moves. The coordinator knows the rules and computes every answer. The
// address contains the game, so that it can be shared.

import { boardOf, hintOf, moveAt } from "./board.js";
import { attribute, h, keyed, show, table, text } from "./dom.js";
import { get } from "./live.js";
import { chooser } from "./players.js";

const SIDES = ["X", "O"];
const PACE_MS = 900;
/** The adviser that stands for the player to move, if two programs play each other. */
const MOVER = "mover";

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

/** The request path for a player: "alpha-beta:4" or "RUN/ARM/REPLICA:2". */
function question(what, game, moves, who) {
  const [player, plies] = who.split(":");
  const asked = [`game=${game}`, `moves=${moves.join(".")}`];
  if (player) asked.push(`player=${player}`);
  if (plies) asked.push(`plies=${plies}`);
  return `/api/play/${what}?${asked.join("&")}`;
}

/** A game in progress: its position and its next request. `changed` is called after each change. */
function match(game, who, moves, changed) {
  const state = { game, who, moves: [...moves], whys: [], position: null, error: "", busy: false, going: false,
    thoughts: [], silent: "", adviser: "", seen: null, at: null };
  let [turn, advice, reviews] = [0, 0, 0];
  /** The requested moves, until the coordinator has answered. */
  let goal = null;

  const human = () => state.who[state.position.to_move] === "you";
  const over = () => state.position?.to_move === null;

  /** Sends a request. Its answer is dropped if another request was made in the meantime. */
  async function ask(path, took) {
    const own = (turn += 1);
    advice += 1;
    shows(state.seen);
    [state.busy, state.error] = [true, ""];
    changed();
    try {
      const answer = await get(path);
      if (own !== turn) return;
      [state.busy, goal] = [false, null];
      took(answer);
    } catch (error) {
      if (own !== turn) return;
      [state.busy, state.error, state.going, goal] = [false, error.message, false, null];
    }
    changed();
  }

  /** Shows an earlier position, or the present one. Answers that are still on their way come too late. */
  function shows(seen) {
    reviews += 1;
    [state.seen, state.at] = [seen, seen && seen.count];
  }

  function settle(position) {
    state.position = position;
    shows(null);
    advise();
    if (over()) state.going = false;
    else if (human()) return;
    else if (SIDES.some((side) => state.who[side] === "you")) step();
    else if (state.going) setTimeout(() => state.going && !state.busy && step(), PACE_MS);
  }

  /** Requests the adviser's evaluations of the moves in the shown position. There may be none. */
  async function advise() {
    [state.thoughts, state.silent] = [[], ""];
    const own = (advice += 1);
    const { position, count } = state.seen ?? { position: state.position, count: state.moves.length };
    if (!state.adviser || !position?.to_move) return;
    const adviser = state.adviser === MOVER ? state.who[position.to_move] : state.adviser;
    const path = question("thoughts", game.name, state.moves.slice(0, count), adviser);
    const { thoughts, error } = await get(path).catch((problem) => ({ error: problem.message }));
    if (own !== advice) return;
    [state.thoughts, state.silent] = [thoughts ?? [], error ?? ""];
    changed();
  }

  function step() {
    if (over() || state.busy || human()) return;
    ask(question("move", game.name, state.moves, state.who[state.position.to_move]), (answer) => {
      state.whys[state.moves.length] = answer.why;
      state.moves.push(answer.move);
      settle(answer);
    });
  }

  /** Goes to the position after these moves. Nothing changes until the coordinator has answered. */
  function look(moves) {
    goal = moves;
    return ask(question("position", game.name, moves, ""), (position) => {
      state.moves = moves;
      state.whys.length = moves.length;
      settle(position);
    });
  }
  return {
    state, human, over, step, look,
    play(move) {
      if (state.busy || state.seen || over() || !human()) return;
      look([...state.moves, move]);
    },
    /** Goes back to the last position in which a person moved, or else by one move. */
    undo() {
      const moves = goal ?? state.moves;
      const sides = moves.map((_, index) => state.who[SIDES[index % 2]] === "you");
      const own = sides.lastIndexOf(true);
      state.going = false;
      look(moves.slice(0, own >= 0 ? own : Math.max(0, moves.length - 1)));
    },
    /** Moves the shown position by this many moves, from the last requested one. The game itself does not change. */
    async review(by) {
      const last = state.moves.length;
      const count = Math.min(Math.max(0, (state.at ?? last) + by), last);
      const own = (reviews += 1);
      [state.at, state.error] = [count < last ? count : null, ""];
      changed();
      try {
        const path = question("position", game.name, state.moves.slice(0, count), "");
        const seen = count < last ? { position: await get(path), count } : null;
        if (own !== reviews) return;
        shows(seen);
        advise();
      } catch (error) {
        if (own !== reviews) return;
        shows(state.seen);
        state.error = error.message;
      }
      changed();
    },
    go(going) {
      state.going = going;
      changed();
      if (going) step();
    },
    advisedBy(adviser) {
      state.adviser = adviser;
      advise();
      changed();
    },
    end() {
      [turn, advice, reviews, state.going] = [turn + 1, advice + 1, reviews + 1, false];
    },
  };
}

/** The status line for a position. */
function said({ position, moves, whys, who, busy, seen }) {
  if (!position) return "";
  if (seen) return `After ${seen.count} of ${moves.length} moves.`;
  const last = moves.length - 1;
  const made = last >= 0 && whys[last] ? `${SIDES[last % 2]} plays ${moves[last]}: ${whys[last]}. ` : "";
  const you = (side) => who[side] === "you";
  const alone = you("X") !== you("O");
  if (position.result === "draw") return `${made}A draw.`;
  if (position.result) {
    const won = alone ? (you(position.result) ? "You win!" : "You lose.") : `${position.result} wins.`;
    return `${made}${won}`;
  }
  if (you(position.to_move)) return `${made}Your move, ${position.to_move}.`;
  return busy && alone ? `${position.to_move} thinks…` : `${made}It is ${position.to_move}'s turn.`;
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
  const earlier = button("Earlier", () => current.review(-1));
  const later = button("Later", () => current.review(1));
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
    if (!move) return text(failed, `${name || "Nothing"} is not a legal move here: ${legalText()}.`);
    typed.value = "";
    current.play(move.move);
  } }, h("label", { for: "move" }, "Type a move"), typed, h("button", null, "Play it"));
  const legalText = () => {
    const names = state.position?.legal.map((legal) => legal.move) ?? [];
    return names.length > 20 ? `from ${names.at(-1)} to ${names[0]}` : names.join(", ");
  };
  const moves = h("ol", { class: "moves" });
  const none = h("p", { class: "soft" }, "None yet.");
  const thoughts = table("Its evaluation of each move", THOUGHTS, (thought) => thought.cell);
  const silent = h("p", { class: "soft" });
  const named = game.players.filter((one) => !["random", "filtered"].includes(one.name));
  const watched = SIDES.every((side) => state.who[side] !== "you");
  const advisers = [["", "nobody"], ...(watched ? [[MOVER, "the player to move"]] : []),
    ...named.map((one) => [one.name, one.name]),
    ...SIDES.map((side) => [state.who[side], `${side}: ${state.who[side]}`]).filter(([who]) => who.includes("/"))];
  const adviser = h("select", { id: "adviser", onchange: () => current.advisedBy(adviser.value) },
    ...advisers.map(([value, name]) => h("option", { value }, name)));
  const node = h("div", { class: "match" },
    h("section", { class: "card", "aria-label": "Board" }, status, board.node, failed, form,
      h("div", { class: "buttons" }, step, watched && go, undo, earlier, later, button("New game", again),
        // Over plain HTTP from another host, browsers have no clipboard.
        navigator.clipboard && share)),
    h("div", { class: "beside" },
      h("section", { class: "card", "aria-labelledby": "moves" }, h("h2", { id: "moves" }, "Moves"), none, moves),
      h("section", { class: "card", "aria-labelledby": "hints" },
        h("div", { class: "row" }, h("h2", { id: "hints" }, "Hints"),
          h("span", { class: "controls" }, h("label", { for: "adviser" }, "from"), adviser)), silent, thoughts.node)));
  function update() {
    text(status, said(state));
    text(failed, state.error && `The request failed: ${state.error}.`);
    show(failed, Boolean(state.error));
    attribute(go, "aria-pressed", state.going);
    text(step, watched ? "One move" : "Ask again");
    show(step, !current.over() && (watched || Boolean(state.error && state.position && !current.human())));
    show(go, !current.over());
    attribute(undo, "disabled", state.moves.length ? null : "");
    attribute(earlier, "disabled", (state.at ?? state.moves.length) > 0 ? null : "");
    attribute(later, "disabled", state.at === null ? "" : null);
    show(form, Boolean(state.position) && !state.seen && !current.over() && current.human());
    show(none, state.moves.length === 0);
    const items = state.moves.map((move, index) => ({ index, move, why: state.whys[index] }));
    keyed(moves, items, ({ index, move, why }) => `${index} ${move} ${why}`, ({ index, move, why }) => {
      const reason = why ? h("span", { class: "soft" }, ` ${why}`) : "";
      return { node: h("li", null, h("strong", null, `${SIDES[index % 2]} ${move}`), reason), update() {} };
    });
    show(thoughts.node, state.thoughts.length > 0);
    text(silent, state.silent && `No hints here: ${state.silent}.`);
    thoughts.update(state.thoughts);
    const position = state.seen?.position ?? state.position;
    if (position) board.update(position, lastCell(position), state.thoughts);
  }
  /** The cell of the last move. If stones fall, it is the highest stone of the pile. */
  function lastCell(position) {
    const name = state.moves[seen() - 1];
    if (!name) return -1;
    const named = game.cells.map((cell, index) => (cell.startsWith(name) ? index : -1));
    return named.find((index) => index >= 0 && position.board[index] !== ".") ?? -1;
  }
  return { node, update };
}

/** The address of a game. */
function address({ game, who, moves }) {
  const played = moves.length ? `&m=${moves.join(".")}` : "";
  return `#/play/${game.name}?x=${who.X}&o=${who.O}${played}`;
}

export function playView(path, query) {
  const heading = h("h1", { tabindex: "-1" }, "Play");
  const lead = h("p", { class: "lead" }, "Play against champions that evolved here or against players that "
    + "need no learning, or let two of them play each other.");
  const [setup, place] = [h("div"), h("div")];
  const node = h("div", { class: "inside" }, heading, lead, setup, place);
  let current = null;
  let ended = false;

  function begin(game, who, moves) {
    current?.end();
    const changed = () => {
      if (ended || current !== own) return;
      history.replaceState(null, "", address(own.state));
      shown.update();
    };
    const own = match(game, who, moves, changed);
    const shown = boardView(own, () => begin(game, own.state.who, []));
    current = own;
    place.replaceChildren(shown.node);
    own.look(own.state.moves);
  }

  async function start() {
    const { games } = await get("/api/play");
    const asked = read(path, query);
    let wanted = asked.game;
    // A champion determines the game, and perhaps plays only one side.
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
    const panel = chooser(games, game, asked.who, begin);
    if (ended) return;
    setup.replaceChildren(panel);
    begin(game, asked.who, asked.moves);
  }

  const failed = ({ message }) => h("p", { class: "banner" }, `This cannot be played: ${message}.`);
  start().catch((error) => place.replaceChildren(failed(error)));
  return { title: "Play", node, update() {}, end() {
    ended = true;
    current?.end();
  } };
}
