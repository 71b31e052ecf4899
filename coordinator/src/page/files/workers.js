// All workers, and what happened to others.

import { h, keyed, show, table, text } from "./dom.js";
import { clock, count, counted, duration, number, rate } from "./format.js";
import { now, runs, starves, state } from "./live.js";
import { figures } from "./runs.js";
import { listSavers } from "./save.js";

/** The number of digits of a rate that says something. */
const RATE_DIGITS = 3;

function computes(worker) {
  if (worker.draining) return "leaving";
  return worker.runs.length > 0 ? worker.runs.join(", ") : "idle";
}

function heard(worker) {
  return worker.silent_s === 0 ? "now" : `${duration(worker.silent_s)} ago`;
}

function details(worker) {
  const refused = worker.kinds_refused.length > 0 ? `; other results for ${worker.kinds_refused.join(", ")}` : "";
  const programs = worker.programs.length > 0 ? `; programs ${worker.programs.join(", ")}` : "";
  return `${worker.build}${programs}${refused}`;
}

const COLUMNS = [
  { name: "Name", value: (worker) => worker.name, sort: (worker) => worker.name },
  { name: "Address", value: (worker) => worker.address, sort: (worker) => worker.address },
  { name: "Computes", value: computes, sort: computes },
  { name: "Slots", class: "number", value: (worker) => count(worker.slots),
    sort: (worker) => worker.slots, down: true },
  { name: "Tasks out", class: "number", value: (worker) => count(worker.tasks_assigned),
    sort: (worker) => worker.tasks_assigned, down: true, title: "tasks that it has now" },
  { name: "Tasks done", class: "number", value: (worker) => count(worker.tasks_done),
    sort: (worker) => worker.tasks_done, down: true, title: "since it connected" },
  { name: "Tasks a second", class: "number", value: (worker) => number(worker.rate, RATE_DIGITS),
    sort: (worker) => worker.rate ?? 0, down: true, title: "over the last minute" },
  { name: "Heard", class: "number", value: heard, sort: (worker) => worker.silent_s },
  { name: "Connected", class: "number", value: (worker) => duration(Math.max(0, now() - worker.since)),
    sort: (worker) => -worker.since, down: true },
  { name: "Build", class: "soft build", value: details, sort: details },
];

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

/** The view of all workers. */
export function workersView() {
  const tiles = figures("tiles");
  const banner = h("p", { class: "banner", role: "alert" });
  const filter = h("input", { type: "search", id: "filter", autocomplete: "off", oninput: () => update() });
  const found = h("p", { class: "soft", role: "status" });
  const search = h("div", { class: "search" }, h("label", { for: "filter" }, "Filter"), filter, found);
  const list = table("Workers", COLUMNS, (worker) => worker.session, { column: 0, down: false });
  const save = listSavers("the workers", () => "workers", () => [...state.workers.values()]);
  const empty = h("div", { class: "empty" },
    h("h2", null, "No workers are connected"),
    h("p", null, "Start some, on this host or on others:"),
    h("pre", null, h("code", null, `evoxo-worker --coordinator ${location.host}`)));
  const news = h("ul", { class: "news" });
  const quiet = h("p", { class: "soft" }, "Nothing since the coordinator started.");
  const node = h("div", { class: "inside" },
    h("h1", { tabindex: "-1" }, "Workers"), banner,
    tiles.node, empty, search, h("div", { class: "card flush" }, list.node), save,
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
    text(banner, starving.length > 0 ? `Nobody computes ${names}.` : "");
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const about = (worker) => `${worker.name} ${worker.address} ${computes(worker)} ${details(worker)}`.toLowerCase();
    const shown = all.filter((worker) => words.every((word) => about(worker).includes(word)));
    show(empty, state.known && all.length === 0);
    [search, list.node.parentElement, save].forEach((part) => show(part, all.length > 0));
    text(found, words.length > 0 ? `${counted(shown.length, "worker")} of ${count(all.length)}` : "");
    list.update(shown);
    show(quiet, state.known && state.news.length === 0);
    keyed(news, [...state.news].reverse(), (one) => one.number, item);
  }
  return { node, title: "Workers", end() {}, update };
}
