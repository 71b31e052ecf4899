// A large board for a wall or a classroom, against the strongest player of the game and the best champions of the runs.

import { boardOf, cellOf, moveAt } from "./board.js";
import { attribute, h, show, text } from "./dom.js";
import { get, listen, runs } from "./live.js";
import { match, said } from "./match.js";

/** The most runs whose champions are asked for, and the most opponents. */
const ASKED_MAX = 20;
const OPPONENTS_MAX = 4;
/** A game that nobody goes on with begins again after this time, so that the next visitor finds an empty board. */
const AGAIN_MS = 60_000;

/** What a champion is, in the first sentence about its kind of experiment. */
const about = (summary) => `${summary.split(". ")[0].replace(/\.$/, "")}.`;

/** The best champion of a run that plays this game, or null. */
async function championOf(name, game) {
  const { best } = await get(`/api/runs/${name}/report`);
  const arm = best.arm ?? Math.max(0, best.replicas.findIndex((replica) => replica !== null));
  const who = `${name}/${arm}/${best.replicas[arm] ?? 0}`;
  const told = await get(`/api/play/introduction?player=${who}`);
  if (told.game !== game.name) return null;
  const run = await get(`/api/runs/${name}`);
  return { who, side: told.side ?? "O", name, about: about(run.summary) };
}

/** The newest finished run of each kind of experiment. */
function newest() {
  const finished = runs().filter((run) => run.state === "finished");
  const byTime = finished.sort((one, other) => (other.ended ?? 0) - (one.ended ?? 0));
  return byTime.filter((run, index) => byTime.findIndex((other) => other.experiment === run.experiment) === index)
    .slice(0, ASKED_MAX).map((run) => run.name);
}

/** A button that chooses an opponent, with how its games ended since the page was opened. */
function opponentButton(opponent, choose) {
  const ends = { won: 0, drawn: 0, lost: 0 };
  const tally = h("span", { class: "soft" });
  const node = h("button", { type: "button", "aria-pressed": "false", onclick: () => choose(opponent) },
    h("strong", null, opponent.name), h("span", null, opponent.about), tally);
  const tell = () => text(tally, `Visitors won ${ends.won}, drew ${ends.drawn}, lost ${ends.lost}`);
  tell();
  return { node, count(end) {
    ends[end] += 1;
    tell();
  } };
}

export function wallView(path) {
  const heading = h("h1", { tabindex: "-1" }, "Can you beat them?");
  const [place, choice] = [h("section", { class: "card", "aria-label": "Board" }), h("div", { class: "opponents" })];
  const few = h("p", { class: "soft" });
  const node = h("div", { class: "inside wide" }, heading,
    h("div", { class: "contest" }, place, h("section", { "aria-label": "Opponents" }, choice, few)));
  const buttons = new Map();
  let [current, timer, ended, unlisten] = [null, 0, false, () => {}];

  function begin(game, opponent) {
    current?.end();
    clearTimeout(timer);
    const you = opponent.side === "X" ? "O" : "X";
    const status = h("p", { class: "status", role: "status" });
    const again = h("button", { type: "button", class: "button", onclick: () => begin(game, opponent) }, "Play again");
    const failed = h("p", { class: "warning", role: "alert" });
    let counted = false;
    const changed = () => {
      if (ended || current !== own) return;
      const { position, error, moves } = own.state;
      text(status, said(own.state));
      text(failed, error && `It cannot be done: ${error}.`);
      show(failed, Boolean(error));
      show(again, moves.length > 0);
      if (!position) return;
      board.update(position, cellOf(game, position, moves.at(-1)), [], { free: !own.over() && own.human() });
      if (own.over() && !counted) {
        counted = true;
        const end = { draw: "drawn", [you]: "won" }[position.result] ?? "lost";
        buttons.get(opponent.who).count(end);
      }
      clearTimeout(timer);
      if (moves.length) timer = setTimeout(() => begin(game, opponent), AGAIN_MS);
    };
    const own = match(game, { [you]: "you", [opponent.side]: opponent.who }, [], changed);
    const board = boardOf(game, (cell) => {
      const move = own.state.position && moveAt(game, own.state.position, cell);
      if (move) own.play(move.move);
    });
    current = own;
    buttons.forEach((button, who) => attribute(button.node, "aria-pressed", String(who === opponent.who)));
    place.replaceChildren(status, board.node, failed, h("div", { class: "buttons" }, again));
    own.look([]);
  }

  function offer(game, opponent) {
    const button = opponentButton(opponent, (chosen) => begin(game, chosen));
    buttons.set(opponent.who, button);
    choice.append(button.node);
  }

  /** Offers champions as runs finish. */
  function champions(game) {
    const asked = new Set();
    const look = async () => {
      for (const name of newest()) {
        if (ended || asked.has(name) || buttons.size >= OPPONENTS_MAX) continue;
        asked.add(name);
        const found = await championOf(name, game).catch(() => null);
        if (found && !ended && buttons.size < OPPONENTS_MAX) offer(game, found);
        show(few, buttons.size < 2);
      }
    };
    unlisten = listen(look);
    look();
  }

  async function start() {
    const { games } = await get("/api/play");
    const wanted = path.split("/")[2] || games[0].name;
    const game = games.find((one) => one.name === wanted);
    if (!game) throw new Error(`there is no game ${wanted}`);
    if (ended) return;
    const perfect = game.players.some((one) => one.name === "perfect");
    const strong = perfect ? "perfect" : `alpha-beta:${game.plies_max}`;
    const does = perfect ? "It never errs: a draw is the most that anybody gets."
      : `It looks ${game.plies_max} moves ahead.`;
    text(few, "When a run has finished whose champions play this game, its best champion is offered here.");
    const first = { who: strong, side: "O", name: perfect ? "Perfect" : "Alpha-beta", about: does };
    offer(game, first);
    begin(game, first);
    champions(game);
  }

  const failed = ({ message }) => h("p", { class: "banner" }, `This cannot be played: ${message}.`);
  start().catch((error) => place.replaceChildren(failed(error)));
  return { title: "Can you beat them?", node, update() {}, end() {
    ended = true;
    unlisten();
    clearTimeout(timer);
    current?.end();
  } };
}
