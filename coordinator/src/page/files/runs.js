// All runs: a table to sort and search, with the verdict of each.

import { attribute, h, keyed, show, table, text } from "./dom.js";
import { count, counted, duration, moment, number, percent, rate } from "./format.js";
import { command, isOver, now, runs, starves, state, workerCommand } from "./live.js";
import { listSavers } from "./save.js";
import { sparks } from "./sparks.js";
import { tour } from "./tour.js";
import { verdictOf } from "./verdicts.js";

const SIGNS = {
  running: "▶", paused: "❚❚", finished: "✓", cancelled: "⊘", failed: "✕", blocked: "⚠", "in doubt": "?",
};
/** The most arms that are drawn, or named with a value, for a run. */
const ARMS_MAX = 6;
const NAMED_MAX = 3;

/** The state of a run: a sign, a word and a colour. */
export function badge() {
  const sign = h("span", { "aria-hidden": "true" });
  const word = h("span");
  const node = h("span", null, sign, word);
  return {
    node,
    update(run) {
      attribute(node, "class", `badge ${run.state.replace(" ", "-")}`);
      text(sign, SIGNS[run.state] ?? "?");
      text(word, run.state);
    },
  };
}

/** How far a run is. A finished run has no bar. */
export function progress() {
  const bar = h("progress", { "aria-label": "rounds done", max: 1, value: 0 });
  return {
    node: bar,
    update(run) {
      show(bar, !isOver(run));
      attribute(bar, "max", Math.max(1, run.rounds_total));
      attribute(bar, "value", run.rounds_done);
      attribute(bar, "class", run.state.replace(" ", "-"));
    },
  };
}

/** The sentence for a run without workers. */
export function starving(run) {
  const why = run.message || `No worker that computes ${run.experiment} is connected.`;
  return `${why.charAt(0).toUpperCase()}${why.slice(1)}`;
}

/** A short list of names and values. `update` takes pairs. */
export function figures(look) {
  const node = h("dl", { class: look });
  const one = () => {
    const [name, value] = [h("dt"), h("dd")];
    return {
      node: h("div", null, name, value),
      update(pair) {
        text(name, pair[0]);
        text(value, pair[1]);
      },
    };
  };
  return { node, update: (pairs) => keyed(node, pairs, (pair) => pair[0], one) };
}

/** How many seconds a run has taken, from its first order to its last stored replica; null if unknown. */
function seconds(run) {
  if (run.began === null || run.began === undefined) return null;
  if (run.ended) return Math.max(0, run.ended - run.began);
  return run.state === "running" ? Math.max(0, now() - run.began) : null;
}

/** The figures of a run. Its pace is included only while it runs. */
export function figuresOf(run) {
  const done = percent(run.rounds_done, run.rounds_total);
  const pairs = [
    ["Rounds", run.rounds_done < run.rounds_total ? `${count(run.rounds_done)} of ${count(run.rounds_total)}, ${done}`
      : count(run.rounds_total)],
    ["Replicas finished", `${count(run.replicas_finished)} of ${count(run.replicas_total)}`],
  ];
  if (run.state === "running") {
    pairs.push(["Pace", rate(run.rate)], ["Left", run.left_s === null ? "–" : duration(run.left_s)],
      ["Workers", run.workers === 0 ? "none" : `${count(run.workers)} with ${counted(run.slots, "slot")}`]);
  }
  if (run.began) pairs.push(["Began", moment(run.began)]);
  if (run.ended) pairs.push(["Took", duration(seconds(run))]);
  return pairs;
}

/** The newest values of the primary metric in a line. */
export function values(run) {
  const arms = run.arms.filter((arm) => arm.value !== null && arm.value !== undefined);
  if (arms.length === 0) return "";
  const one = (arm) => (run.arms.length > 1 ? `${number(arm.value, 3)} (${arm.name})` : number(arm.value, 3));
  const more = arms.length > NAMED_MAX ? `, and ${counted(arms.length - NAMED_MAX, "arm")} more` : "";
  return `${arms[0].primary_metric} ${arms.slice(0, NAMED_MAX).map(one).join(", ")}${more}`;
}

/** What is known of a run's result, and whether it is a problem. */
function outcome(run, parts) {
  if (starves(run)) return [starving(run), true];
  if (run.message && run.state !== "running") return [run.message, true];
  const verdict = isOver(run) && parts.verdict(run);
  return [verdict || values(run) || run.message, false];
}

/** The parts of a row that are elements. */
function parts(name) {
  const [link, kind, mark, bar, about] = [h("a", { href: `#/runs/${name}` }, name), h("span", { class: "kind" }),
    badge(), progress(), h("span", { class: "soft" })];
  const note = h("span", { class: "tag" });
  const result = h("p", { class: "outcome" });
  const curves = sparks(link, ARMS_MAX);
  const own = {
    name: h("span", { class: "called" }, link, kind, note),
    state: h("span", { class: "how" }, mark.node, about, bar.node),
    result,
    curve: curves.node,
    verdict: verdictOf(link, () => own.latest && own.update(own.latest)),
    update(run) {
      own.latest = run;
      [mark, bar, curves].forEach((part) => part.update(run));
      text(kind, run.experiment === name ? "" : run.experiment);
      text(note, run.terms?.note ?? "");
      show(note, Boolean(note.textContent));
      const left = run.left_s !== null && run.left_s !== undefined ? `, ${duration(run.left_s)} left` : "";
      const far = run.state === "running" ? left : "";
      text(about, isOver(run) ? "" : percent(run.rounds_done, run.rounds_total) + far);
      const [sentence, bad] = outcome(run, own);
      text(result, sentence);
      attribute(result, "class", bad ? "outcome warning" : "outcome");
      attribute(result, "title", sentence);
    },
  };
  return own;
}

/** The columns, with the parts of each run. */
function columns(of) {
  return [
    { name: "Run", value: (run) => of(run).name, sort: (run) => run.name },
    { name: "State", class: "state", value: (run) => of(run).state, sort: (run) => run.state },
    { name: "Began", class: "when", value: (run) => (run.began ? moment(run.began) : "–"),
      sort: (run) => run.began ?? 0, down: true },
    { name: "Took", class: "number took", title: "from its first order to its last stored replica",
      value: (run) => (seconds(run) === null ? "–" : duration(seconds(run))), sort: (run) => seconds(run) ?? -1,
      down: true },
    { name: "Result", class: "result", value: (run) => of(run).result },
    { name: "Curve", class: "curve", title: "median of the primary metric of each arm", value: (run) => of(run).curve },
    { name: "Owner", class: "owner", value: (run) => run.submitter, sort: (run) => run.submitter },
  ];
}

/** Unfinished runs first, then the newest. */
function ordered(all) {
  return [...all].sort((one, other) => isOver(one) - isOver(other) || (other.began ?? 0) - (one.began ?? 0));
}

/** The view of all runs. */
export function runsView() {
  const rows = new Map();
  const of = (run) => {
    if (!rows.has(run.name)) rows.set(run.name, parts(run.name));
    return rows.get(run.name);
  };
  const list = table("Runs", columns(of), (run) => run.name);
  const said = h("p", { class: "lead" });
  const banner = h("p", { class: "banner", role: "alert" });
  const empty = h("div", { class: "empty" },
    h("h2", null, "No runs yet"),
    h("p", null, "Write an experiment file, and submit it:"),
    h("pre", null, h("code", null, `evoxo new invincible > first.toml\n${command("evoxo submit first.toml")}`)),
    h("p", null, "The run then appears here, and opens with a click."));
  const filter = h("input", { type: "search", id: "filter", autocomplete: "off", oninput: () => update() });
  const found = h("p", { class: "soft", role: "status" });
  const search = h("div", { class: "search" }, h("label", { for: "filter" }, "Filter"), filter, found);
  const nothing = h("p", { class: "empty" }, "No run has all of these words: they are searched in names, experiments, "
    + "states, notes, arms, owners and results.");
  const save = listSavers("the runs", () => "runs", () => [...state.runs.values()]);
  const card = h("div", { class: "card flush runs" }, list.node);
  const guide = tour(() => (state.runs.size > 0 ? list.node.querySelector("tbody a") : empty.querySelector("pre")));
  const node = h("div", { class: "inside" }, h("h1", { tabindex: "-1" }, "Runs"), said, guide.node, banner,
    empty, search, card, nothing, save);
  function update() {
    const all = ordered(runs());
    const going = all.filter((run) => run.state === "running");
    const hungry = going.filter(starves);
    show(empty, state.known && all.length === 0);
    show(said, all.length > 0);
    text(said, `${counted(all.length, "run")}, ${count(going.length)} running; `
      + `${counted(state.workers.size, "worker")} connected`);
    show(banner, hungry.length > 0);
    const names = hungry.map((run) => run.name).slice(0, 5).join(", ");
    text(banner, names && `No worker computes ${names}. Start a worker: ${workerCommand()}`);
    for (const run of all) of(run).update(run);
    for (const name of rows.keys()) if (!state.runs.has(name)) rows.delete(name);
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const about = (run) => [run.name, run.experiment, run.state, run.submitter, run.terms?.note,
      of(run).result.textContent, ...run.arms.map((arm) => arm.name)].join(" ").toLowerCase();
    const shown = words.length > 0 ? all.filter((run) => words.every((word) => about(run).includes(word))) : all;
    show(search, all.length > 1);
    [card, save].forEach((part) => show(part, shown.length > 0));
    show(nothing, all.length > 0 && shown.length === 0);
    text(found, words.length > 0 ? `${counted(shown.length, "run")} of ${count(all.length)}` : "");
    const owners = new Set(all.map((run) => run.submitter));
    attribute(list.node, "class", `scroll dense${owners.size > 1 ? "" : " one-owner"}`);
    list.update(shown);
    guide.update(state.known);
  }
  return { node, title: "Runs", end() {}, update };
}
