// The choice of players: the game, and for each side a person, a player that needs no learning, or a champion.

import { attribute, h, show, text } from "./dom.js";
import { get, runs, state } from "./live.js";

const CHAMPION = "champion";
/** The player in a game that lacks the chosen one. */
const OTHERWISE = "alpha-beta";
/** The most runs that are asked for a champion of a game. */
const ASKED_MAX = 20;

/** The champion of the newest run whose champions play this game; null if there is none. */
async function championOf(game) {
  for (const { name } of runs().slice(0, ASKED_MAX)) {
    const told = await get(`/api/play/introduction?player=${name}/0/0`).catch(() => ({ game: null }));
    if (told.game === game.name) return `${name}/0/0`;
  }
  return null;
}

/** What the players without a champion do. */
const ABOUT = {
  random: "any legal move, each with equal probability",
  filtered: "completes or blocks a line if it can (the filter), otherwise moves at random",
  benchmark: "wins, blocks, or avoids giving a win, in this order; otherwise moves at random",
  "alpha-beta": "looks as many moves ahead as you choose",
  perfect: "never errs",
  teacher: "takes the cell with the highest score over its lines",
};

/** Fills a selection with options. */
function offer(select, options, chosen) {
  select.replaceChildren(...options.map(([value, name]) => h("option", { value }, name)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

/** The controls of one side. `who()` is its player as in the address. */
function seat(side, initial, changed) {
  const id = (name) => `${name}-${side}`;
  let game = null;
  const [named, plies] = initial.split(":");
  const [run, arm, replica] = named.includes("/") ? named.split("/") : ["", "0", "0"];
  const field = (name, label, input) => h("span", { class: "field" }, h("label", { for: id(name) }, label), input);
  const kind = h("select", { id: id("kind"), onchange: () => pick() });
  const ofRun = h("select", { id: id("run"), onchange: () => arms() });
  const ofArm = h("select", { id: id("arm"), onchange: () => changed() });
  const number = h("input", { id: id("replica"), type: "number", min: "0", value: replica, onchange: () => changed() });
  const ahead = h("select", { id: id("plies"), onchange: () => changed() });
  const champion = h("div", { class: "fields" }, field("run", "Run", ofRun), field("arm", "Arm", ofArm),
    field("replica", "Replica", number));
  const depth = field("plies", "Looks ahead", ahead);
  const about = h("p", { class: "soft" });
  const node = h("fieldset", null, h("legend", null, side), field("kind", "Player", kind), champion, depth, about);

  /** The arms of the run, loaded when the run is chosen. */
  async function arms(chosen) {
    const told = ofRun.value ? await get(`/api/runs/${ofRun.value}`).catch(() => null) : null;
    offer(ofArm, (told?.arms ?? []).map((one, index) => [String(index), one.name]), chosen ?? "0");
    attribute(number, "max", told ? told.arms[0].replicas_total - 1 : 0);
    if (chosen === undefined) {
      number.value = "0";
      changed();
    }
  }

  function looks() {
    const ready = kind.value === CHAMPION || game.players.some((one) => one.name === kind.value && one.looks_ahead);
    show(depth, ready && kind.value !== CHAMPION);
    show(champion, kind.value === CHAMPION);
    text(about, ABOUT[kind.value] ?? "");
    show(about, Boolean(about.textContent));
  }

  async function pick() {
    looks();
    if (kind.value === CHAMPION && !ofArm.value) return arms();
    changed();
  }

  /** Offers the kinds of players and the runs of the moment. */
  function offers() {
    const names = runs().map((one) => [one.name, one.name]);
    if (run && !names.some(([name]) => name === run)) names.push([run, run]);
    const options = [["you", "You"], ...game.players.map((one) => [one.name, one.name])];
    if (names.length) options.push([CHAMPION, "a champion of a run"]);
    const wanted = kind.value || (run ? CHAMPION : named);
    offer(kind, options, options.some(([value]) => value === wanted) ? wanted : OTHERWISE);
    offer(ofRun, names, ofRun.value || run);
  }

  return {
    node,
    /** Offers runs that have arrived, or are gone, since. */
    refresh() {
      if (!game) return;
      offers();
      looks();
    },
    async set(nextGame) {
      game = nextGame;
      offers();
      offer(ahead, Array.from({ length: game.plies_max }, (_, index) => [String(index + 1), `${index + 1} plies`]),
        ahead.value || plies || String(game.plies_max));
      if (kind.value === CHAMPION && !ofArm.value) await arms(arm);
      looks();
    },
    who() {
      if (kind.value === CHAMPION) return `${ofRun.value}/${ofArm.value || 0}/${number.value || 0}`;
      return depth.hidden ? kind.value : `${kind.value}:${ahead.value}`;
    },
    /** Changes to another player. */
    async become(who) {
      const [player, far] = who.split(":");
      const [toRun, toArm, toReplica] = player.split("/");
      kind.value = player.includes("/") ? CHAMPION : player;
      if (kind.value === CHAMPION) {
        ofRun.value = toRun;
        await arms(toArm);
        number.value = toReplica;
      }
      if (far) ahead.value = far;
      looks();
    },
  };
}

/** The panel. `begin(game, {X, O}, [])` starts a new game. */
export function chooser(games, first, who, begin) {
  let game = first;
  const note = h("p", { class: "soft", role: "status" });
  let turn = 0;
  const changed = async () => {
    const own = (turn += 1);
    text(note, "");
    const next = { X: seats.X.who(), O: seats.O.who() };
    for (const side of ["X", "O"]) {
      if (!next[side].includes("/")) continue;
      const told = await get(`/api/play/introduction?player=${next[side]}`).catch(({ message }) => ({ why: message }));
      // Another choice was made meanwhile.
      if (own !== turn) return;
      if (!told.game) return text(note, `This champion cannot be played: ${told.why}.`);
      if (told.game !== game.name) {
        const other = side === "X" ? "O" : "X";
        await play(games.find((one) => one.name === told.game));
        text(note, `${side}'s champion plays ${told.game}.`);
        if (next[other].includes("/")) await seats[other].become("you");
        next[other] = seats[other].who();
      }
      if (told.side && told.side !== side) return text(note, `This champion plays ${told.side} only: swap the sides.`);
    }
    if (own === turn) begin(game, next, []);
  };
  const seats = { X: seat("X", who.X, changed), O: seat("O", who.O, changed) };
  const select = h("select", { id: "game", onchange: async () => {
    await play(games.find((one) => one.name === select.value));
    // A champion plays only its own game: another run's champion takes its place, if there is one.
    for (const side of ["X", "O"]) {
      if (seats[side].who().includes("/")) await seats[side].become(await championOf(game) ?? OTHERWISE);
    }
    changed();
  } });
  const about = h("span", { class: "soft" });
  async function play(next) {
    game = next;
    offer(select, games.map((one) => [one.name, one.name]), game.name);
    text(about, game.about);
    await Promise.all([seats.X.set(game), seats.O.set(game)]);
  }
  const swap = h("button", { type: "button", onclick: async () => {
    const [x, o] = [seats.X.who(), seats.O.who()];
    await Promise.all([seats.X.become(o), seats.O.become(x)]);
    changed();
  } }, "Swap sides");
  play(game);
  const node = h("section", { class: "card setup", "aria-label": "Game and players" },
    h("div", { class: "row" }, h("label", { for: "game" }, "Game"), select, swap), about,
    h("div", { class: "seats" }, seats.X.node, seats.O.node), note);
  let known = "";
  return {
    node,
    /** Offers the champions of all runs, which may arrive after the panel. */
    update() {
      const names = [...state.runs.keys()].join();
      if (names === known) return;
      known = names;
      [seats.X, seats.O].forEach((one) => one.refresh());
    },
  };
}
