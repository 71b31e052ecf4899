// The parts of a run that are loaded on request: its replicas, its settings, its file.

import { attribute, h, show, table } from "./dom.js";
import { count, number } from "./format.js";
import { get } from "./live.js";
import { listSavers, savers } from "./save.js";

const ARMS_MAX = 24;

function scroll(label, content) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, content);
}

function head(names) {
  return h("thead", null, h("tr", null, ...names.map((name) => h("th", { scope: "col" }, name))));
}

/** Settings: first those in which arms differ, one row per arm; then the common ones. */
function settings(name, run) {
  const arms = run.arm_settings;
  const same = (setting) => arms.every((arm) => arm[setting.name] === arms[0][setting.name]);
  const different = run.settings.filter((setting) => !same(setting));
  const parts = [];
  if (different.length > 0) {
    const row = (arm, index) => h("tr", null, h("th", { scope: "row" }, run.arms[index].name),
      ...different.map((setting) => h("td", null, arm[setting.name])));
    parts.push(h("h3", null, "Settings in which the arms differ"), scroll("Settings in which the arms differ",
      h("table", null, head(["Arm", ...different.map((setting) => setting.name)]),
        h("tbody", null, ...arms.map(row)))));
  }
  const row = ([name, value, doc]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, value),
    h("td", { class: "soft" }, doc));
  const told = (setting) => [setting.name, arms[0]?.[setting.name], setting.doc.trim()];
  const rows = [["seed", run.seed, "Seed of all random numbers."], ...run.settings.filter(same).map(told)];
  const all = () => arms.map((arm, index) => ({ arm: run.arms[index].name, seed: run.seed, ...arm }));
  const save = listSavers("the settings of each arm", () => `${name}-settings`, all);
  parts.push(h("h3", null, "The same for all arms"), scroll("Settings that are the same for all arms",
    h("table", { class: "settings" }, head(["Setting", "Value", "Meaning"]),
      h("tbody", null, ...rows.map(row)))), save);
  return parts;
}

/** The replicas with their newest rows, loaded when the list is opened. */
function replicas(name, run) {
  const shown = h("div");
  const value = (one, index) => (index < one.last.length ? number(one.last[index], 5) : "–");
  const columns = [
    { name: "Arm", value: (one) => run.arms[one.arm]?.name ?? "", sort: (one) => one.arm },
    { name: "Replica", class: "number", value: (one) => one.replica, sort: (one) => one.replica },
    { name: "State", value: (one) => (one.finished ? "✓ finished" : "running"), sort: (one) => one.finished },
    ...run.columns.map((column, index) => ({ name: column.name, class: "number", title: column.doc,
      value: (one) => value(one, index), sort: (one) => one.last[index] ?? -Infinity })),
  ];
  const list = table("Replicas", columns, (one) => `${one.arm} ${one.replica}`);
  let known = [];
  const record = ({ arm, replica, finished, last }) => ({ arm: run.arms[arm]?.name ?? "", replica, finished,
    ...Object.fromEntries(run.columns.map((column, index) => [column.name, last[index] ?? null])) });
  const save = listSavers("the newest rows of the replicas", () => `${name}-replicas`, () => known.map(record));
  const load = async () => {
    if (!node.open) return;
    try {
      const answer = await get(`/api/runs/${name}/replicas`);
      const first = () => h("p", { class: "soft" }, `Only the first ${count(answer.next)} replicas.`);
      const more = answer.next === null ? [] : [first()];
      known = answer.replicas;
      shown.replaceChildren(list.node, ...more, save);
      list.update(known);
    } catch (error) {
      shown.replaceChildren(h("p", { class: "warning" }, error.message));
    }
  };
  const again = h("button", { type: "button", onclick: load }, "Read them again");
  const node = h("details", { class: "card", ontoggle: load }, h("summary", null, "Replicas and their newest rows"),
    h("p", null, again), shown);
  return node;
}

/**
 * Links to the best champion of each arm and, if they play a game, to boards on which they play. `best` takes the best
 * replicas from the report, and returns the address of a game against the best champion, or null if it plays none.
 */
export function championsOf(name, run) {
  const [plays, shows] = [[], []];
  let [game, found] = [false, null];
  const links = run.arms.slice(0, ARMS_MAX).map((arm, index) => {
    const label = `Play against ${arm.name}`;
    const play = h("a", { href: `#/play?o=${name}/${index}/0`, "aria-label": label, hidden: true }, "play");
    plays.push(play);
    shows.push(h("a", { href: `#/runs/${name}/champions/${index}/0` }, arm.name));
    return h("li", null, shows[index], " ", play);
  });
  const of = (arm) => found?.replicas[arm] ?? 0;
  const update = () => {
    plays.forEach((play, arm) => {
      attribute(play, "href", `#/play?o=${name}/${arm}/${of(arm)}`);
      attribute(shows[arm], "href", `#/runs/${name}/champions/${arm}/${of(arm)}`);
      show(play, game);
    });
    const arm = found?.arm ?? 0;
    return game ? `#/play?o=${name}/${arm}/${of(arm)}` : null;
  };
  const node = h("section", { class: "card", "aria-labelledby": "champions" },
    h("h2", { id: "champions" }, "Champions"),
    h("p", { class: "soft" }, "Each link leads to the best replica of its arm."),
    h("ul", { class: "links" }, ...links));
  return {
    node,
    best(next) {
      found = next;
      return update();
    },
    /** Asks whether the champions play a game. */
    async plays() {
      const told = await get(`/api/play/introduction?player=${name}/0/0`).catch(() => ({ game: null }));
      game = Boolean(told.game);
      return update();
    },
  };
}

/** All parts, as sections that can be opened. */
export function detailsOf(name, run) {
  const section = (title, ...content) => h("details", { class: "card" }, h("summary", null, title), ...content);
  return [
    replicas(name, run),
    section("Settings", h("p", null, run.summary), ...settings(name, run)),
    section("The experiment file with every setting",
      savers("the experiment file", () => name, { toml: () => run.config }),
      h("pre", { tabindex: "0", role: "region", "aria-label": "Experiment file" }, h("code", null, run.config))),
  ];
}
