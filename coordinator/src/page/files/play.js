// Playing: a board, two players, hints, a list of moves. The coordinator knows the rules and computes every answer.
// The game is in the address, so it can be shared.

import { analysisOf } from "./analysis.js";
import { boardOf, hintOf, moveAt, outcomeOf } from "./board.js";
import { matchboxes } from "./boxes.js";
import { attribute, h, keyed, show, table, text } from "./dom.js";
import { get } from "./live.js";
import { chooser } from "./players.js";

const SIDES = ["X", "O"];
const PACE_MS = 900;
/** The pace of a replay. */
const REPLAY_MS = 700;
/** The adviser "whoever moves", for watching two players. */
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

/** A question to a player, such as "alpha-beta:4" or "RUN/ARM/REPLICA:2". */
function question(what, game, moves, who) {
  const [player, plies] = who.split(":");
  const asked = [`game=${game}`, `moves=${moves.join(".")}`];
  if (player) asked.push(`player=${player}`);
  if (plies) asked.push(`plies=${plies}`);
  return `/api/play/${what}?${asked.join("&")}`;
}

/** A game in progress: the board, and who moves next. `changed` is called after each change. */
function match(game, who, moves, changed) {
  const state = { game, who, moves: [...moves], whys: [], position: null, error: "", busy: false, going: false,
    thoughts: [], silent: "", adviser: "", seen: null, at: null };
  let [turn, advice, reviews, replays] = [0, 0, 0, 0];
  /** The requested moves, until the coordinator has answered. */
  let goal = null;

  const human = () => state.who[state.position.to_move] === "you";
  const over = () => state.position?.to_move === null;

  /** Sends a request. The answer is dropped if another request was sent meanwhile. */
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

  /** Shows an earlier position, or the present one. A position that is still on its way is dropped. */
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

  /** Asks the adviser about the moves in the shown position. It may have nothing to say. */
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

  /** Goes to the position after these moves. Until the coordinator has answered, nothing changes. */
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
      replays += 1;
      if (state.busy || state.seen || over() || !human()) return;
      look([...state.moves, move]);
    },
    /** Goes back to the last position in which a person moved, or else by one move. */
    undo() {
      replays += 1;
      const moves = goal ?? state.moves;
      const sides = moves.map((_, index) => state.who[SIDES[index % 2]] === "you");
      const own = sides.lastIndexOf(true);
      state.going = false;
      look(moves.slice(0, own >= 0 ? own : Math.max(0, moves.length - 1)));
    },
    /** Goes this many moves further in the display, from the last requested position. The game stays unchanged. */
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
    /** Shows the whole game again, from its first move. */
    async replay() {
      const own = (replays += 1);
      for (let count = 0; count <= state.moves.length && own === replays; count += 1) {
        await this.review(count - (state.at ?? state.moves.length));
        await new Promise((done) => setTimeout(done, REPLAY_MS));
      }
    },
    /** Goes to the position after so many moves. */
    show(count) {
      replays += 1;
      return this.review(count - (state.at ?? state.moves.length));
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
      [turn, advice, reviews, replays] = [turn + 1, advice + 1, reviews + 1, replays + 1];
      state.going = false;
    },
  };
}

/** The sentence about a position. */
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
  /** The cell of the last move. If stones fall, the highest stone of its pile. */
  function lastCell(position) {
    const name = state.moves[seen() - 1];
    if (!name) return -1;
    const named = game.cells.map((cell, index) => (cell.startsWith(name) ? index : -1));
    return named.find((index) => index >= 0 && position.board[index] !== ".") ?? -1;
  }
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
  const node = h("div", { class: "inside wide" }, heading,
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
