// All workers, and the latest events about lost ones.

import { question } from "./dialog.js";
import { attribute, h, keyed, show, table, text } from "./dom.js";
import { clock, count, counted, duration, moment, number, rate } from "./format.js";
import { may, now, order, runs, starves, state, workerCommand } from "./live.js";
import { figures } from "./runs.js";
import { listSavers } from "./save.js";

/** The number of meaningful digits of a rate. */
const RATE_DIGITS = 3;

function computes(worker) {
  if (worker.draining) return "leaving";
  if (worker.cordon) {
    const busy = worker.tasks_assigned > 0 ? ", still busy" : "";
    return `cordoned by ${worker.cordon.by} since ${moment(worker.cordon.since)}${busy}`;
  }
  const computing = worker.runs.length > 0 ? worker.runs.join(", ") : "idle";
  const trial = worker.on_trial ? `${computing}, on trial` : computing;
  return worker.notice ? `${trial}; ${worker.notice}` : trial;
}

function heard(worker) {
  return worker.silent_s === 0 ? "now" : `${duration(worker.silent_s)} ago`;
}

/** The attempts of a worker that did not end with an output in time: reasons and numbers. */
function badEnds(worker) {
  return Object.entries(worker.ends).filter(([end, times]) => end !== "done" && times > 0);
}

/** Tasks done, and below them the attempts that ended badly, with their reasons in the title. */
function done(worker) {
  const bad = badEnds(worker);
  if (bad.length === 0) return count(worker.tasks_done);
  const title = bad.map(([end, times]) => `${count(times)} ${end.replace("_", " ")}`).join(", ");
  const sum = bad.reduce((sum, [, times]) => sum + times, 0);
  return h("span", { title }, count(worker.tasks_done), h("br"), `${count(sum)} bad`);
}

function details(worker) {
  const refused = worker.kinds_refused.length > 0 ? `; different results for ${worker.kinds_refused.join(", ")}` : "";
  const programs = worker.programs.length > 0 ? `; programs ${worker.programs.join(", ")}` : "";
  return `${worker.build}${programs}${refused}`;
}

const COLUMNS = [
  // Workers with a notice come first.
  { name: "Name", value: (worker) => worker.name, sort: (worker) => (worker.notice ? " " : "") + worker.name },
  { name: "Host", class: "host", value: (worker) => worker.host, sort: (worker) => worker.host },
  { name: "Identity", class: "identity", value: (worker) => worker.identity, sort: (worker) => worker.identity },
  { name: "Address", class: "address", value: (worker) => worker.address, sort: (worker) => worker.address },
  { name: "Computes", value: computes, sort: computes },
  { name: "Slots", class: "number", value: (worker) => count(worker.slots),
    sort: (worker) => worker.slots, down: true },
  { name: "Tasks out", class: "number", value: (worker) => count(worker.tasks_assigned),
    sort: (worker) => worker.tasks_assigned, down: true, title: "tasks that the worker has now" },
  { name: "Tasks done", class: "number", value: done, sort: (worker) => worker.tasks_done, down: true,
    title: "since it connected; below it the attempts without an output in time" },
  { name: "Tasks a second", class: "number", value: (worker) => number(worker.rate, RATE_DIGITS),
    sort: (worker) => worker.rate ?? 0, down: true, title: "over the last minute" },
  { name: "Heard", class: "number", value: heard, sort: (worker) => worker.silent_s },
  { name: "Connected", class: "number", value: (worker) => duration(Math.max(0, now() - worker.since)),
    sort: (worker) => -worker.since, down: true },
  { name: "Build", class: "build", value: details, sort: details },
];

/** A column with a button for each worker that asks it to leave. */
function leaving() {
  let meant = null;
  const buttons = new Map();
  const failed = h("p", { class: "warning", role: "alert", hidden: true });
  const drain = async () => {
    show(failed, false);
    try {
      await order(`workers/${meant.session}/drain`);
    } catch (error) {
      text(failed, `It cannot be done: ${error.message}.`);
      show(failed, true);
    }
  };
  const sure = question({ id: "drain-title", title: "", keep: "Keep it", agree: "Ask it to leave",
    body: "The worker finishes its tasks, gets no more, and ends. It comes back if it is restarted." }, drain);
  const ask = (worker) => {
    meant = worker;
    sure.open(`Ask ${worker.name} to leave?`);
  };
  const button = (worker) => {
    if (worker.draining) return "";
    const onclick = () => ask(worker);
    const about = { type: "button", class: "small", "aria-label": `Drain… ${worker.name}`, onclick };
    if (!buttons.has(worker.session)) buttons.set(worker.session, h("button", about, "Drain…"));
    return buttons.get(worker.session);
  };
  const forget = () => [...buttons.keys()].forEach((key) => state.workers.has(key) || buttons.delete(key));
  return { column: { name: "Leave", value: button }, node: h("div", null, failed, sure.node), forget };
}

function item() {
  const [time, topic, sentence] = [h("time"), h("strong"), h("span")];
  return {
    node: h("li", null, time, topic, sentence),
    update(news) {
      text(time, clock(news.at));
      text(topic, news.topic);
      text(sentence, news.sentence);
    },
  };
}

/** A worker that is set aside. */
function away() {
  const [name, sentence] = [h("strong"), h("span")];
  return {
    node: h("li", null, name, sentence),
    update(worker) {
      text(name, `${worker.name} on ${worker.host}`);
      text(sentence, `until ${clock(worker.until)}: ${worker.reason}`);
    },
  };
}

/** The view of all workers. */
export function workersView() {
  const tiles = figures("tiles");
  const banner = h("p", { class: "banner", role: "alert" });
  const filter = h("input", { type: "search", id: "filter", autocomplete: "off", oninput: () => update() });
  const [found, same] = [h("p", { class: "soft", role: "status" }), h("p", { class: "soft" })];
  const search = h("div", { class: "search" }, h("label", { for: "filter" }, "Filter"), filter, found);
  const drain = leaving();
  const columns = may("drain") ? [...COLUMNS, drain.column] : COLUMNS;
  const list = table("Workers", columns, (worker) => worker.session, { column: 0, down: false });
  const save = listSavers("the workers", () => "workers", () => [...state.workers.values()]);
  const empty = h("div", { class: "empty" },
    h("h2", null, "No workers are connected"),
    h("p", null, "Start some, on this host or on others:"),
    h("pre", null, h("code", null, workerCommand())));
  const aside = h("ul", { class: "news" });
  const nobody = h("p", { class: "soft" }, "None.");
  const news = h("ul", { class: "news" });
  const quiet = h("p", { class: "soft" }, "Nothing since the coordinator started.");
  const node = h("div", { class: "inside wide" },
    h("h1", { tabindex: "-1" }, "Workers"), banner,
    tiles.node, empty, search, drain.node, h("div", { class: "card flush" }, list.node), same, save,
    h("h2", null, "Set aside"),
    h("p", { class: "soft" },
      "Workers whose tasks fail or differ although those of others do not. They are retried later."),
    nobody, aside,
    h("h2", null, "What happened"),
    h("p", { class: "soft" }, "The coordinator's latest warnings: lost and refused workers, doubts, trouble."),
    quiet, news);
  function update() {
    const all = [...state.workers.values()];
    const sum = (value) => all.reduce((total, worker) => total + value(worker), 0);
    const idle = all.filter((worker) => worker.tasks_assigned === 0).length;
    tiles.update([["Workers", count(all.length)], ["Slots", count(sum((worker) => worker.slots))],
      ["Idle workers", count(idle)], ["Tasks a second", number(sum((worker) => worker.rate ?? 0), RATE_DIGITS)]]);
    const starving = runs().filter(starves);
    show(banner, starving.length > 0);
    const names = starving.map((run) => run.name).slice(0, 5).join(", ");
    text(banner, starving.length > 0 ? `No worker computes ${names}.` : "");
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const about = (worker) => [worker.name, worker.host, worker.identity, worker.address, computes(worker),
      details(worker)].join(" ").toLowerCase();
    const shown = all.filter((worker) => words.every((word) => about(worker).includes(word)));
    show(empty, state.known && all.length === 0);
    [search, list.node.parentElement, same, save].forEach((part) => show(part, all.length > 0));
    text(found, words.length > 0 ? `${counted(shown.length, "worker")} of ${count(all.length)}` : "");
    // A column with the same value for all workers is replaced by one sentence.
    const builds = new Set(all.map(details));
    text(same, builds.size === 1 ? `All have the build ${[...builds][0]}.` : "");
    const named = all.some((worker) => worker.host && worker.host !== worker.name);
    const without = [builds.size < 2 && "one-build", !named && "no-host",
      !all.some((worker) => worker.identity) && "no-identity"];
    attribute(list.node, "class", ["scroll", "dense", ...without].filter(Boolean).join(" "));
    list.update(shown);
    drain.forget();
    show(nobody, state.known && state.aside.length === 0);
    keyed(aside, state.aside, (worker) => worker.session, away);
    show(quiet, state.known && state.news.length === 0);
    keyed(news, [...state.news].reverse(), (one) => one.number, item);
  }
  return { node, title: "Workers", end() {}, update };
}
