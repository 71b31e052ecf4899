// Two runs side by side: the settings that differ, digests, curves, tests, results.

import { curvesOf } from "./curves.js";
import { attribute, h, keyed, show, text } from "./dom.js";
import { count, counted, number, percent } from "./format.js";
import { get, runs, state } from "./live.js";
import { asker, resultsOf, warning } from "./results.js";
import { listSavers } from "./save.js";

const LETTERS = ["A", "B"];
/** Longer values, such as a module of WebAssembly, are cut off. */
const VALUE_MAX = 160;
/** The most arms that are named next to a value. */
const ARMS_MAX = 6;

/** A list of the other runs, and a button that compares this run with one of them. */
export function chooser(name, chosen = null) {
  const choice = h("select", { id: "with" });
  const go = () => { location.hash = `#/runs/${name}/with/${choice.value}`; };
  const node = h("div", { class: "field with" }, h("label", { for: "with" }, "Compare with"), choice,
    h("button", { type: "button", onclick: go }, "Compare"));
  let listed = "";
  return {
    node,
    update(run) {
      const others = runs().filter((other) => other.name !== name).sort((a, b) => (a.name < b.name ? -1 : 1));
      show(node, others.length > 0);
      const [same, rest] = [true, false].map((same) =>
        others.filter((other) => (other.experiment === run.experiment) === same).map((other) => other.name));
      const now = JSON.stringify([same, rest]);
      if (now === listed) return;
      listed = now;
      const wanted = choice.value || chosen;
      const option = (value) => h("option", { value, selected: value === wanted }, value);
      const group = (label, names) => names.length > 0 && h("optgroup", { label }, ...names.map(option));
      const groups = [group(`Runs of ${run.experiment}`, same), group("Other experiments", rest)];
      choice.replaceChildren(...groups.filter(Boolean));
    },
  };
}

/** The names of both runs after their letters. */
function lettered(names) {
  return names.map((name, index) => `${LETTERS[index]} ${name}`);
}

function head(names) {
  return h("thead", null, h("tr", null, ...names.map((name) => h("th", { scope: "col" }, name))));
}

function scroll(label, ...content) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...content);
}

/** What the hashes of two runs say about them, and the style of the sentence. */
function verdict([one, two]) {
  const [same, both] = [one.config_hash === two.config_hash, Boolean(one.digest && two.digest)];
  const equal = both && one.digest === two.digest;
  if (!same) return [`The configurations differ${equal ? ", but all results are equal" : ""}.`];
  if (one.replicas_total !== two.replicas_total) {
    return ["The configurations are equal, but not the numbers of replicas: the digests are of different replicas."];
  }
  if (!both) return ["The configurations are equal, so at the end the digests must be equal too."];
  if (equal) return ["One configuration was computed twice, and its results are the same, bit for bit."];
  const wrong = "Equal configurations must have equal digests, but these differ: evoxo verify says which run is wrong.";
  return [wrong, "warning"];
}

/** The extent and the hashes of both runs. */
function glance(names) {
  const short = (hash) => (hash ? `${hash.slice(0, 10)}…` : "–");
  const known = ([one, two]) => (one === two ? "equal" : "differ");
  const compared = (of) => (both) => (both.every(of) ? known(both.map(of)) : "not yet known");
  const lines = [
    ["Experiment", (run) => run.experiment],
    ["State", (run) => run.state],
    ["Rounds", ({ rounds_done: done, rounds_total: all }) => `${count(done)} of ${count(all)}, ${percent(done, all)}`],
    ["Replicas finished", (run) => `${count(run.replicas_finished)} of ${count(run.replicas_total)}`],
    ["Configuration", (run) => short(run.config_hash), compared((run) => run.config_hash)],
    ["Digest", (run) => short(run.digest), compared((run) => run.digest)],
  ];
  const line = ([name, value, said]) => {
    const cells = [...LETTERS, ""].map(() => h("td"));
    return {
      node: h("tr", null, h("th", { scope: "row" }, name), ...cells),
      update(both) {
        both.forEach((run, index) => text(cells[index], value(run)));
        text(cells[2], said ? said(both) : "");
      },
    };
  };
  const rows = lines.map(line);
  const of = (name, index) =>
    h("th", { scope: "col" }, `${LETTERS[index]} `, h("a", { href: `#/runs/${name}` }, name));
  const heads = [h("th", { scope: "col" }, "Run"), ...names.map(of), h("th", { scope: "col" }, "Compared")];
  const sentence = h("p", { role: "status" });
  const node = h("section", { class: "card", "aria-labelledby": "glance" }, h("h2", { id: "glance" }, "At a glance"),
    scroll("Both runs at a glance", h("table", null, h("thead", null, h("tr", null, ...heads)),
      h("tbody", null, ...rows.map((row) => row.node)))), sentence);
  return {
    node,
    update(both) {
      rows.forEach((row) => row.update(both));
      const [words, look = null] = verdict(both);
      text(sentence, words);
      attribute(sentence, "class", look);
    },
  };
}

/** The value of a setting in a run: one value, or several with their arms. `cut` shortens what is too long. */
function valueOf(details, setting, cut) {
  const arms = new Map();
  details.arm_settings.forEach((values, index) => {
    const value = String(values[setting] ?? "–");
    arms.set(value, [...(arms.get(value) ?? []), details.arms[index].name]);
  });
  const short = (value) =>
    (cut && value.length > VALUE_MAX ? `${value.slice(0, VALUE_MAX)}… (${counted(value.length, "letter")})` : value);
  const named = (all) => {
    const rest = cut ? all.length - ARMS_MAX : 0;
    return rest > 0 ? `${all.slice(0, ARMS_MAX).join(", ")} and ${rest} more` : all.join(", ");
  };
  const each = [...arms].map(([value, all]) => (arms.size > 1 ? `${short(value)} (${named(all)})` : short(value)));
  return each.join("; ");
}

/** The differences of two configurations: for each a name, both values and a meaning. */
function differences(both) {
  const lines = [
    ["seed", (details) => details.seed, "Seed of all random numbers."],
    ["replicas", (details) => `${details.replicas_total / details.arms.length}`, "Repetitions of each arm."],
    ["arms", (details) => details.arms.map((arm) => arm.name).join(", "), "What is compared within the run."],
    ...both[0].settings.map(({ name, doc }) => [name, (details, cut) => valueOf(details, name, cut), doc.trim()]),
  ];
  const differs = ([, value]) => value(both[0], false) !== value(both[1], false);
  return lines.filter(differs).map(([name, value, doc]) => [name, ...both.map((details) => value(details, true)), doc]);
}

/** The settings in which two runs of one experiment differ. */
function settingsOf(names, both) {
  const found = differences(both);
  const row = ([name, one, two, doc]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, one),
    h("td", null, two), h("td", { class: "soft" }, doc));
  const save = listSavers("the settings that differ", () => `${names.join("-with-")}-settings`,
    () => found.map(([setting, one, two]) => ({ setting, A: one, B: two })));
  const table = () => scroll("Settings of both runs", h("table", { class: "differing" },
    head(["Setting", ...lettered(names), "Meaning"]), h("tbody", null, ...found.map(row))));
  return h("section", { class: "card", "aria-labelledby": "differing" },
    h("h2", { id: "differing" }, "Settings that differ"),
    ...(found.length > 0 ? [table(), save] : [h("p", null, "None: all settings are equal.")]));
}

/** The tests of the final values of both runs. */
function testsOf(names) {
  const [failed, why, body] = [warning(), h("p"), h("tbody")];
  const within = (mean, half, digits) => `${number(mean, digits)} ± ${number(half, 2)}`;
  const side = ({ mean, half_width: half, replicas }) => `${within(mean, half, 5)} (n ${count(replicas)})`;
  const p = (value) => (value < 0.0001 ? "< 0.0001" : value.toFixed(4));
  const line = () => {
    const cells = [h("th", { scope: "row" }), ...LETTERS.map(() => h("td")), h("td"), h("td")];
    const update = ({ arm, one, two, difference, p: chance }) =>
      [arm, side(one), side(two), within(difference.mean, difference.half_width, 4), p(chance)]
        .forEach((words, index) => text(cells[index], words));
    return { node: h("tr", null, ...cells), update };
  };
  const note = h("p", { class: "soft" });
  const table = scroll("Tests of both runs", h("table", null, head(["Arm", ...lettered(names), "B − A", "P"]), body));
  const take = (found) => {
    show(table, found.tests.length > 0);
    show(note, found.tests.length > 0);
    keyed(body, found.tests, ({ arm }) => arm, line);
    const corrected = found.tests.length > 1 ? `, corrected for ${found.tests.length} tests by Holm's method` : "";
    text(note, `P: ${found.test}; the chance of such a difference if there were none${corrected}; ± 95 % intervals. It `
      + "says whether the means differ, not which of the settings is the cause.");
    text(why, found.why ? `There is no test: ${found.why}.`
      : `${found.metric}: ${found.doc}, mean over replicas at the end.`);
  };
  [table, note].forEach((part) => show(part, false));
  const update = asker(`/api/runs/${names[0]}/comparison?with=${names[1]}`, () => true, take, failed);
  return {
    node: h("section", { class: "card", "aria-labelledby": "tested" },
      h("h2", { id: "tested" }, "Is the difference due to chance?"), failed, why, table, note),
    update(both) {
      const over = both.every((run) => ["finished", "in doubt"].includes(run.state));
      const sum = (of) => both.reduce((all, run) => all + of(run), 0);
      update({ state: over ? "finished" : "running", rounds_done: sum((run) => run.rounds_done),
        replicas_finished: sum((run) => run.replicas_finished) });
    },
  };
}

/** The parts that need the settings of both runs, which are requested whenever a configuration changes. */
function asked(names) {
  const node = h("div");
  const failed = warning();
  let [parts, loaded, loading, over, curves] = [[], "", false, false, null];
  async function load(both, key) {
    loading = true;
    try {
      const found = await Promise.all(names.map((name) => get(`/api/runs/${name}`)));
      if (over) return;
      loaded = key;
      curves?.end();
      curves = null;
      const unread = names.filter((_, index) => !found[index].columns);
      const same = unread.length === 0 && found[0].experiment === found[1].experiment;
      if (same) {
        const run = (name, index) => ({ name, details: found[index], letter: LETTERS[index] });
        curves = curvesOf(...names.map(run));
      }
      const tests = same ? testsOf(names) : null;
      const results = names.map((name, index) => (found[index].columns ? resultsOf(name, LETTERS[index]) : null));
      parts = [
        curves && { update: (both) => curves.update(...both) }, tests,
        ...results.map((part, index) => part && { update: (both) => part.update(both[index]) }),
      ].filter(Boolean);
      const sentence = unread.length > 0 ? `This build cannot read ${unread.join(" and ")}.`
        : "The experiments differ: their settings and metrics have different meanings, so neither is compared.";
      const above = same ? [settingsOf(names, found), curves.node, tests.node] : [h("p", { class: "card" }, sentence)];
      const shown = results.filter(Boolean).map((part) => part.node);
      node.replaceChildren(...above, h("div", { class: "pair" }, ...shown));
      parts.forEach((part) => part.update(both));
      text(failed, "");
    } catch (error) {
      // The next message retries.
      text(failed, `The runs cannot be compared: ${error.message}.`);
    } finally {
      loading = false;
    }
    show(failed, Boolean(failed.textContent));
  }
  return {
    node: h("div", null, failed, node),
    update(both) {
      const key = both.map((run) => `${run.config_hash} ${run.replicas_total}`).join();
      if (!loading && loaded !== key) load(both, key);
      parts.forEach((part) => part.update(both));
    },
    end() {
      over = true;
      curves?.end();
    },
  };
}

/** The view of two runs. */
export function compareView(first, second) {
  const names = [first, second];
  const [above, rest, choice] = [glance(names), asked(names), chooser(first, second)];
  const body = h("div", null, above.node, rest.node);
  const missing = h("p", { class: "empty" });
  const title = `${first} and ${second}`;
  const node = h("div", { class: "inside wide" },
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Runs"), " › ", h("a", { href: `#/runs/${first}` }, first)),
    h("div", { class: "row head" }, h("h1", { tabindex: "-1" }, title), choice.node), missing, body);

  function update() {
    const both = names.map((name) => state.runs.get(name));
    const gone = names.filter((_, index) => !both[index]);
    const [same, known] = [first === second, gone.length === 0];
    show(body, known && !same);
    show(missing, !known || same);
    text(missing, same ? "This is the same run twice: choose another one." : state.known
      ? `There is no run ${gone.join(" and no run ")} here (any more).` : "Waiting for the coordinator.");
    show(choice.node, Boolean(both[0]));
    if (both[0]) choice.update(both[0]);
    if (!known || same) return;
    above.update(both);
    rest.update(both);
  }
  return { node, title, end: rest.end, update };
}
