// All runs.

import { attribute, h, keyed, show, text } from "./dom.js";
import { count, counted, duration, number, percent, rate } from "./format.js";
import { command, runs, starves, state, workerCommand } from "./live.js";
import { sparks } from "./sparks.js";

const SIGNS = {
  running: "▶", paused: "❚❚", finished: "✓", cancelled: "⊘", failed: "✕", blocked: "⚠", "in doubt": "?",
};

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

/** How far a run is. */
export function progress() {
  const bar = h("progress", { "aria-label": "rounds done", max: 1, value: 0 });
  return {
    node: bar,
    update(run) {
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

/** The figures of a run. Its pace is included only while it runs. */
export function figuresOf(run) {
  const done = percent(run.rounds_done, run.rounds_total);
  const pairs = [
    ["Rounds", run.rounds_done < run.rounds_total ? `${count(run.rounds_done)} of ${count(run.rounds_total)}, ${done}`
      : count(run.rounds_total)],
    ["Replicas finished", `${count(run.replicas_finished)} of ${count(run.replicas_total)}`],
  ];
  if (run.state !== "running") return pairs;
  return [...pairs,
    ["Pace", rate(run.rate)],
    ["Left", run.left_s === null ? "–" : duration(run.left_s)],
    ["Workers", run.workers === 0 ? "none" : `${count(run.workers)} with ${counted(run.slots, "slot")}`],
  ];
}

/** The most arms that are listed for a run. */
const ARMS_MAX = 8;

function arms(curves) {
  const list = h("ul", { class: "arms", "aria-label": "arms" });
  const more = h("p", { class: "soft" });
  const one = ({ index, arm: { name: called } }) => {
    const [name, value] = [h("span", { class: "name" }, called), h("span", { class: "value" })];
    return {
      node: h("li", null, name, curves.of(called, index), value),
      update({ arm }) {
        text(value, number(arm.value));
      },
    };
  };
  return {
    node: h("div", null, more, list),
    update(run) {
      const metric = run.arms[0]?.primary_metric ?? "";
      const rest = run.arms.length - ARMS_MAX;
      const first = rest > 0 ? `; the first ${ARMS_MAX} of ${counted(run.arms.length, "arm")}` : "";
      text(more, `${metric}, mean over replicas${first}`);
      const items = run.arms.slice(0, ARMS_MAX).map((arm, index) => ({ arm, index }));
      keyed(list, items, ({ arm }) => arm.name, one);
      curves.update(run);
    },
  };
}

function card() {
  const link = h("a");
  const kind = h("span", { class: "kind" });
  const [mark, bar] = [badge(), progress()];
  const numbers = figures("figures");
  const warning = h("p", { class: "warning" });
  const node = h("li", { class: "card run" },
    h("div", { class: "row" }, h("h2", null, link), kind, mark.node),
    bar.node, numbers.node, warning);
  const list = arms(sparks(node, ARMS_MAX));
  node.append(list.node);
  return {
    node,
    update(run) {
      text(link, run.name);
      attribute(link, "href", `#/runs/${run.name}`);
      text(kind, run.experiment === run.name ? "" : run.experiment);
      [mark, bar, list].forEach((part) => part.update(run));
      numbers.update(figuresOf(run));
      text(warning, starves(run) ? starving(run) : run.message);
      show(warning, Boolean(warning.textContent));
    },
  };
}

/** The view of all runs. */
export function runsView() {
  const list = h("ul", { class: "cards" });
  const said = h("p", { class: "lead" });
  const banner = h("p", { class: "banner", role: "alert" });
  const empty = h("div", { class: "empty" },
    h("h2", null, "No runs yet"),
    h("p", null, "Submit an experiment, and it will appear here:"),
    h("pre", null, h("code", null, command("evoxo submit FILE.toml"))));
  const node = h("div", { class: "inside" }, h("h1", { tabindex: "-1" }, "Runs"), said, banner, empty, list);
  return {
    node,
    title: "Runs",
    end() {},
    update() {
      const all = runs();
      const going = all.filter((run) => run.state === "running");
      const starving = going.filter(starves);
      show(empty, state.known && all.length === 0);
      show(said, all.length > 0);
      text(said, `${counted(all.length, "run")}, ${count(going.length)} running; `
        + `${counted(state.workers.size, "worker")} connected`);
      show(banner, starving.length > 0);
      const names = starving.map((run) => run.name).slice(0, 5).join(", ");
      text(banner, names && `No worker computes ${names}. Start a worker: ${workerCommand()}`);
      keyed(list, all, (run) => run.name, card);
    },
  };
}
