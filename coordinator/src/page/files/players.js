// The choice of players: the game, and for each side a person, a player that needs no learning, or a champion of a run.

import { attribute, h, show, text } from "./dom.js";
import { get, runs } from "./live.js";

const CHAMPION = "champion";

/** Fills a select element. */
function offer(select, options, chosen) {
  select.replaceChildren(...options.map(([value, name]) => h("option", { value }, name)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

/** One side. `who()` returns the player as it appears in the address. */
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
  const node = h("fieldset", null, h("legend", null, side), field("kind", "Player", kind), champion, depth);

  /** Loads the arms of the chosen run. */
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
  }

  async function pick() {
    looks();
    if (kind.value === CHAMPION && !ofArm.value) return arms();
    changed();
  }

  return {
    node,
    async set(nextGame) {
      game = nextGame;
      const names = runs().map((one) => [one.name, one.name]);
      if (run && !names.some(([name]) => name === run)) names.push([run, run]);
      const options = [["you", "You"], ...game.players.map((one) => [one.name, one.name])];
      if (names.length) options.push([CHAMPION, "a champion of a run"]);
      offer(kind, options, kind.value || (run ? CHAMPION : named));
      offer(ofRun, names, ofRun.value || run);
      offer(ahead, Array.from({ length: game.plies_max }, (_, index) => [String(index + 1), `${index + 1} plies`]),
        ahead.value || plies || String(game.plies_max));
      if (kind.value === CHAMPION && !ofArm.value) await arms(arm);
      looks();
    },
    who() {
      if (kind.value === CHAMPION) return `${ofRun.value}/${ofArm.value || 0}/${number.value || 0}`;
      return depth.hidden ? kind.value : `${kind.value}:${ahead.value}`;
    },
    /** Sets another player. */
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
      // The choice has changed in the meantime.
      if (own !== turn) return;
      if (!told.game) return text(note, `This champion cannot be played: ${told.why}.`);
      if (told.game !== game.name) {
        const other = side === "X" ? "O" : "X";
        await play(games.find((one) => one.name === told.game));
        text(note, `${side}'s champion plays ${told.game}.`);
        if (next[other].includes("/")) await seats[other].become("you");
        next[other] = seats[other].who();
      }
      if (told.side && told.side !== side) return text(note, `This champion plays only ${told.side}: swap the sides.`);
    }
    if (own === turn) begin(game, next, []);
  };
  const seats = { X: seat("X", who.X, changed), O: seat("O", who.O, changed) };
  const select = h("select", { id: "game", onchange: async () => {
    await play(games.find((one) => one.name === select.value));
    // A champion plays only its own game.
    for (const side of ["X", "O"]) if (seats[side].who().includes("/")) await seats[side].become("you");
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
  return h("section", { class: "card setup", "aria-label": "Game and players" },
    h("div", { class: "row" }, h("label", { for: "game" }, "Game"), select, about, swap),
    h("div", { class: "seats" }, seats.X.node, seats.O.node), note);
}
