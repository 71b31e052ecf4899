// One run: how far it is, its curves, its arms, its settings.

import { bestOf } from "./candidate.js";
import { candidatesOf } from "./candidates.js";
import { chooser } from "./compare.js";
import { curvesOf } from "./curves.js";
import { championsOf, detailsOf } from "./details.js";
import { question } from "./dialog.js";
import { attribute, h, keyed, show, table, text } from "./dom.js";
import { count, counted, number, percent } from "./format.js";
import { get, may, order, starves, state, workerCommand } from "./live.js";
import { firstOf, resultsOf } from "./results.js";
import { badge, figures, figuresOf, progress, starving } from "./runs.js";
import { listSavers } from "./save.js";
import { tasksOf } from "./tasks.js";

const ARMS = [
  { name: "Arm", value: (arm) => arm.name },
  { name: "Replicas finished", class: "number",
    value: (arm) => `${count(arm.replicas_finished)} of ${count(arm.replicas_total)}` },
  { name: "Rounds", class: "number", value: (arm) => percent(arm.rounds_done, arm.rounds_total) },
  { name: "Newest mean", class: "number", value: (arm) => number(arm.value, 5), sort: (arm) => arm.value ?? -Infinity,
    down: true },
];

/** Buttons that pause, resume and cancel; the last asks first. */
function orders(name) {
  const failed = h("p", { class: "warning", role: "alert", hidden: true });
  let deleted = false;
  const ask = async (verb) => {
    failed.hidden = true;
    try {
      await order(`runs/${name}/${verb}`);
    } catch (error) {
      text(failed, `It cannot be done: ${error.message}.`);
      failed.hidden = false;
    }
  };
  const button = (label, verb) => h("button", { type: "button", onclick: () => ask(verb) }, label);
  const [pause, resume] = [button("Pause", "pause"), button("Resume", "resume")];
  const sure = question({ id: "cancel-title", title: `Cancel ${name}?`, keep: "Keep it", agree: "Cancel the run",
    body: "All results so far stay in the store. To continue later, submit the run again." }, () => ask("cancel"));
  const cancel = h("button", { type: "button", class: "danger", onclick: () => sure.open() }, "Cancel…");
  const gone = question({ id: "delete-title", title: `Delete ${name}?`, keep: "Keep it", agree: "Delete the run",
    body: "All its results are removed from the coordinator's store, for everybody. What was fetched before stays." },
  async () => {
    await ask("delete");
    deleted = failed.hidden;
  });
  const remove = h("button", { type: "button", class: "danger", onclick: () => gone.open() }, "Delete…");
  return {
    node: h("div", { class: "orders" }, h("div", { class: "buttons" }, pause, resume, cancel, remove), failed,
      sure.node, gone.node),
    /** The run is gone. Whoever has deleted it here sees the other runs. */
    end() {
      if (deleted) location.hash = "#/";
    },
    update(run) {
      const offer = (shown, verb, ...states) => show(shown, may(verb) && states.includes(run.state));
      offer(pause, "pause", "running");
      offer(resume, "resume", "paused", "failed", "blocked");
      offer(cancel, "cancel", "running", "paused", "failed");
      offer(remove, "delete", "finished", "in doubt", "cancelled", "failed", "blocked");
    },
  };
}

/** The note of a run, which those who may can change. */
function note(name) {
  const [said, failed] = [h("span"), h("span", { class: "warning", role: "alert" })];
  const field = h("input", { id: "note", type: "text", size: "32", maxlength: "64", autocomplete: "off" });
  const form = h("form", { class: "search", hidden: true, onsubmit: async (event) => {
    event.preventDefault();
    text(failed, "");
    try {
      await order(`runs/${name}/note?text=${encodeURIComponent(field.value.trim())}`);
      show(form, false);
    } catch (error) {
      text(failed, `It cannot be noted: ${error.message}.`);
    }
  } }, h("label", { for: "note" }, "Note"), field, h("button", null, "Keep"), failed);
  const change = h("button", { type: "button", class: "small", onclick: () => {
    show(form, form.hidden);
    field.value = said.textContent;
    field.focus();
  } }, "Note…");
  const node = h("div", { class: "note" }, h("p", null, said, " ", change), form);
  return {
    node,
    update(run) {
      text(said, run.terms?.note ?? "");
      const offered = may("note") && run.state !== "cancelled";
      show(change, offered);
      if (!offered) show(form, false);
      show(node, offered || Boolean(said.textContent));
    },
  };
}

/** The digest and the configuration's hash. */
function hashes() {
  const line = (name) => {
    const value = h("code");
    return { node: h("div", null, h("dt", null, name), h("dd", null, value)), value };
  };
  const [digest, config] = [line("Digest"), line("Configuration")];
  return {
    node: h("dl", { class: "codes" }, digest.node, config.node),
    update(run) {
      text(digest.value, run.digest || "when all replicas are finished");
      text(config.value, run.config_hash);
    },
  };
}

/** The notices of a run. */
function notices() {
  const [doubts, others] = [h("ul"), h("ul")];
  const item = () => {
    const node = h("li");
    return { node, update: (sentence) => text(node, sentence) };
  };
  const doubt = (one) => `In doubt: task ${one.task.slice(0, 16)} of replica ${one.replica} of ${one.arm}, round `
    + `${one.round}. ${one.worker} and ${one.other_worker} have different outputs.`;
  const node = h("section", { class: "card notices", "aria-labelledby": "notices" },
    h("h2", { id: "notices" }, "Notices"), doubts, others);
  return {
    node,
    update(run) {
      show(node, run.notices.length + run.doubts.length > 0);
      keyed(doubts, run.doubts.map(doubt), (sentence) => sentence, item);
      keyed(others, run.notices, (sentence) => sentence, item);
    },
  };
}

/**
 * The parts that need the run's settings, which are loaded once: the verdict on top, curves and results below it,
 * details at the end. `playable` gets the address of a game against the best champion, or null.
 */
function asked(name, playable) {
  const [top, upper, lower] = [h("div"), h("div"), h("div")];
  let [first, curves, results, best, candidates] = [null, null, null, null, null];
  let [loaded, loading, over] = ["", false, false];
  const parts = () => [first, curves, results, candidates].filter(Boolean);
  async function load(run, key) {
    loading = true;
    try {
      const found = await get(`/api/runs/${name}`);
      if (over) return;
      loaded = key;
      [curves, candidates].forEach((part) => part?.end());
      // A run that this build cannot read has no settings.
      curves = found.columns ? curvesOf({ name, details: found }) : null;
      const champions = found.champions ? championsOf(name, found) : null;
      const views = [firstOf, bestOf, candidatesOf];
      [first, best, candidates] = views.map((view) => (found.columns ? view(name) : null));
      const told = (report) => {
        [first, candidates].forEach((part) => part.take(report));
        best.take(report, found.arms);
        // The progress of a league that is over says nothing about its players.
        if (curves) show(curves.node, report.ratings.length === 0 || report.state === "unfinished");
        if (champions) playable(champions.best(report.best));
      };
      results = found.columns ? resultsOf(name, "", told) : null;
      top.replaceChildren(...(results ? [results.verdict] : []));
      upper.replaceChildren(...[first, best, curves, candidates, results, champions].filter(Boolean)
        .map((part) => part.node));
      lower.replaceChildren(...(found.columns ? detailsOf(name, found) : []));
      champions?.plays().then(playable);
      parts().forEach((part) => part.update(run));
    } catch {
      // The next message retries.
    } finally {
      loading = false;
    }
  }
  return {
    top,
    upper,
    lower,
    update(run) {
      const key = `${run.config_hash} ${run.replicas_total}`;
      if (!loading && loaded !== key) load(run, key);
      parts().forEach((part) => part.update(run));
    },
    end() {
      over = true;
      [curves, candidates].forEach((part) => part?.end());
    },
  };
}

/** The view of one run. */
export function runView(name) {
  const [mark, bar, buttons] = [badge(), progress(), orders(name)];
  const play = h("a", { class: "button", hidden: true }, "Play");
  const report = h("button", { type: "button", onclick: () => {
    const title = document.getElementById("results");
    title?.scrollIntoView();
    title?.focus();
  } }, "Report");
  const rest = asked(name, (address) => {
    show(play, Boolean(address));
    attribute(play, "href", address);
  });
  const [notes, codes, choice, remark] = [notices(), hashes(), chooser(name), note(name)];
  const [tiles, tasks] = [figures("tiles"), tasksOf(name)];
  const arms = table("Progress of each arm", ARMS, (arm) => arm.name);
  const save = listSavers("the arms", () => `${name}-arms`, () => state.runs.get(name)?.arms ?? []);
  const [kind, metric] = [h("p", { class: "kind" }), h("p", { class: "soft" })];
  const banner = h("p", { class: "banner", role: "alert" });
  const message = h("p", { class: "warning" });
  const body = h("div", null, rest.top, bar.node, banner, message, tiles.node, choice.node, rest.upper,
    h("section", { class: "card", "aria-labelledby": "arms" },
      h("h2", { id: "arms" }, "Arms"), metric, arms.node, save, codes.node),
    tasks.node, notes.node, rest.lower);
  const missing = h("p", { class: "empty" });
  const node = h("div", { class: "inside" }, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Runs")),
    h("div", { class: "row head" }, h("h1", { tabindex: "-1" }, name), mark.node, kind,
      h("div", { class: "buttons" }, play, report), buttons.node), remark.node, missing, body);

  function update() {
    const run = state.runs.get(name);
    [body, mark.node, kind, report, buttons.node, remark.node].forEach((part) => show(part, Boolean(run)));
    show(missing, !run);
    text(missing, state.known ? `There is no run ${name} here (any more).` : "Waiting for the coordinator.");
    if (!run) return buttons.end();
    [mark, bar, buttons, notes, codes, rest, choice, remark].forEach((part) => part.update(run));
    tiles.update(figuresOf(run));
    text(kind, `experiment ${run.experiment}`);
    show(banner, starves(run));
    text(banner, starves(run) ? `No worker computes this run. ${starving(run)} Start one: ${workerCommand()}` : "");
    show(message, Boolean(run.message) && !starves(run));
    text(message, run.message);
    attribute(message, "class", run.state === "running" ? "soft" : "warning");
    arms.update(run.arms);
    text(metric, `${run.arms[0]?.primary_metric ?? ""}, mean over ${counted(run.replicas_total, "replica")} in `
      + `${counted(run.arms.length, "arm")}: the newest row of each`);
  }
  const end = () => [rest, tasks].forEach((part) => part.end());
  return { node, title: name, end, update };
}
