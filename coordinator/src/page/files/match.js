// A game in progress, without its display: the moves, the position, and what the players and the adviser say.
// The coordinator knows the rules and computes every answer.

import { get } from "./live.js";

export const SIDES = ["X", "O"];
/** The adviser "whoever moves", for watching two players. */
export const MOVER = "mover";
const PACE_MS = 900;
/** The pace of a replay. */
const REPLAY_MS = 700;

/** A question to a player, such as "alpha-beta:4" or "RUN/ARM/REPLICA:2". */
export function question(what, game, moves, who) {
  const [player, plies] = who.split(":");
  const asked = [`game=${game}`, `moves=${moves.join(".")}`];
  if (player) asked.push(`player=${player}`);
  if (plies) asked.push(`plies=${plies}`);
  return `/api/play/${what}?${asked.join("&")}`;
}

/** A game in progress: the board, and who moves next. `changed` is called after each change. */
export function match(game, who, moves, changed) {
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
export function said({ position, moves, whys, who, busy, seen }) {
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
