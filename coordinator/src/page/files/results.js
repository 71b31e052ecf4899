// The results of a run so far, as in its report: the conclusion, the tables, the plots.

import { h, keyed, show, text } from "./dom.js";
import { counted } from "./format.js";
import { get } from "./live.js";
import { ratingsOf } from "./ratings.js";
import { csv, json, savers } from "./save.js";

/** The time between two requests for a newer report. */
const ASK_MS = 5000;
/** The most rows that are shown. Files have all rows that the coordinator sends. */
const ROWS = 200;

/** Requests data that a run's rounds change, again and again while somebody looks. */
export function asker(path, looks, take, failed) {
  let [asked, seen, busy, told, newest] = [0, "", false, "", null];
  async function load() {
    [busy, asked] = [true, Date.now()];
    try {
      const found = await get(path);
      const now = JSON.stringify(found);
      if (now !== told) take(found);
      told = now;
      text(failed, "");
      // The coordinator makes reports now and then, so the final one may come later.
      if (found.state === "unfinished" && ["finished", "in doubt"].includes(newest?.state)) seen = "";
    } catch (error) {
      text(failed, `The report cannot be shown: ${error.message}.`);
      seen = "";
    }
    show(failed, Boolean(failed.textContent));
    busy = false;
  }
  return (run) => {
    newest = run ?? newest;
    // Rounds are stored a little later, so the data is requested once more after a run has stopped.
    const now = newest && `${newest.rounds_done} ${newest.state} ${newest.replicas_finished}`;
    const since = Date.now() - asked;
    if (!looks() || busy || since < ASK_MS || (now === seen && since < 4 * ASK_MS)) return;
    seen = now;
    load();
  };
}

/** The line that says why something cannot be shown. */
export function warning() {
  return h("p", { class: "warning", role: "status", hidden: true });
}

/** A row of as many cells as the header has. */
function row(cells) {
  const nodes = cells.map((_, index) =>
    (index > 0 ? h("td", { class: "number" }) : h("th", { scope: "row" })));
  const update = ({ cells: now }) => now.forEach((value, at) => text(nodes[at], value));
  return { node: h("tr", null, ...nodes), update };
}

/** A table of the report, updated in place. `about` returns the state of the run, for its files. */
function tableOf(first, name, about) {
  const [title, body, more] = [h("h3"), h("tbody"), h("p", { class: "soft" })];
  const heads = first.header.map((head, index) => h("th", { scope: "col", class: index > 0 && "number" }, head));
  const part = h("div", { class: "scroll", tabindex: "0", role: "group" },
    h("table", null, h("thead", null, h("tr", null, ...heads)), body));
  let now = first;
  const whole = () => ({ run: name, ...about(), title: now.title, header: now.header, rows: now.rows });
  const mark = () => (about().state === "unfinished" ? "-unfinished" : "");
  const save = savers(first.title, () => `${name}${mark()}-table-${now.number}`,
    { csv: () => csv([now.header, ...now.rows]), json: () => json(whole()) });
  return {
    node: h("section", { class: "result" }, title, part, more, save),
    update(table) {
      now = table;
      text(title, table.title);
      part.setAttribute("aria-label", table.title);
      const rows = table.rows.slice(0, ROWS).map((cells, at) => ({ cells, at }));
      keyed(body, rows, ({ at }) => at, ({ cells }) => row(cells));
      const left = table.rows.length - rows.length;
      const sentences = [left > 0 && `${counted(left, "row")} more in the files.`,
        table.more > 0 && `${counted(table.more, "row")} more in the output of evoxo report.`];
      text(more, sentences.filter(Boolean).map((sentence) => `And ${sentence}`).join(" "));
      show(more, Boolean(more.textContent));
    },
  };
}

/** A plot of the report. */
function plotOf(first, name, about) {
  const part = h("div", { class: "scroll drawn", tabindex: "0", role: "group" });
  let now = "";
  const mark = () => (about().state === "unfinished" ? "-unfinished" : "");
  const save = savers(first.name, () => `${name}${mark()}-${first.name}`, { svg: () => now });
  return {
    node: h("section", { class: "result" }, part, save),
    update({ svg }) {
      if (svg === now) return;
      now = svg;
      const picture = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
      part.setAttribute("aria-label", picture.querySelector("title").textContent);
      part.replaceChildren(document.adoptNode(picture));
    },
  };
}

/**
 * The picture that shows the result of a run best, next to its curves: the ratings of players, or the picture that the
 * report names. `take` gets each new report, and returns whether there is such a picture.
 */
export function firstOf(name) {
  const [place, failed] = [h("div"), warning()];
  const node = h("section", { class: "card first", "aria-label": "The result", hidden: true }, failed, place);
  let [wanted, latest, drawn] = [null, null, ""];
  const draw = (parts) => {
    place.replaceChildren(...parts);
    show(node, parts.length > 0);
  };
  const ask = asker(`/api/runs/${name}/plots`, () => Boolean(wanted), (found) => {
    const plot = found.plots.find((one) => one.name === wanted);
    if (!plot) return draw([]);
    const part = plotOf(plot, name, () => found);
    part.update(plot);
    draw([part.node]);
  }, failed);
  return {
    node,
    take({ first, ratings }) {
      wanted = ratings.length > 0 ? null : first;
      const now = JSON.stringify(ratings);
      if (ratings.length > 0 && now !== drawn) draw(ratings.map((arm) => ratingsOf(arm, ratings.length > 1)));
      drawn = now;
      if (latest) ask(latest);
      return ratings.length > 0 || Boolean(first);
    },
    update(run) {
      latest = run;
      ask(run);
    },
  };
}

/** The plots, requested while they are open. */
function plotsOf(name) {
  const [list, failed, none] = [h("div"), warning(), h("p", { class: "soft" }, "There is no plot yet.")];
  let state = "";
  const take = (found) => {
    ({ state } = found);
    const plots = found.plots.map((plot, number) => ({ ...plot, number }));
    keyed(list, plots, (plot) => `${plot.number} ${plot.name}`, (plot) => plotOf(plot, name, () => ({ state })));
    show(none, plots.length === 0);
  };
  const update = asker(`/api/runs/${name}/plots`, () => node.open, take, failed);
  const node = h("details", { ontoggle: () => update(null) }, h("summary", null, "Plots of the report"), failed, none,
    list);
  return { node, update };
}

/**
 * The section with the results of a run. When two runs are compared, each has a letter. `verdict` is the conclusion,
 * which may be moved out of the section. `told` is called with each new report.
 */
export function resultsOf(name, letter = "", told = () => {}) {
  const id = `results${letter}`;
  const called = (words) => (letter ? `${letter} ${name}: ${words.toLowerCase()}` : words);
  const title = h("h2", { id, tabindex: "-1" }, called("Results"));
  const mark = h("span", { class: "badge" }, "unfinished");
  const [conclusion, state] = [h("p", { class: "conclusion" }, "The report is being made."), h("p", { class: "soft" })];
  const [failed, list, notes] = [warning(), h("div"), h("ul", { class: "soft" })];
  const plots = plotsOf(name);
  const verdict = h("div", { class: "verdict" }, conclusion, state);
  let about = {};
  const sentence = () => {
    const node = h("li");
    return { node, update: ({ note }) => text(node, note) };
  };
  const take = (found) => {
    about = { state: found.state, replicas: found.replicas, replicas_finished: found.finished };
    const unfinished = found.state === "unfinished";
    show(mark, unfinished);
    text(title, called(unfinished ? "Results so far" : "Results"));
    text(conclusion, found.conclusion);
    text(state, unfinished ? "Unfinished replicas count as far as they are stored; everything may change until the end."
      : "The same as evoxo report prints.");
    const tables = found.tables.map((table, index) => ({ ...table, number: index + 1 }));
    const keyOf = (table) => `${table.number} ${table.header.join("\n")}`;
    keyed(list, tables, keyOf, (table) => tableOf(table, name, () => about));
    keyed(notes, found.notes.map((note, at) => ({ note, at })), ({ at }) => at, sentence);
    told(found);
  };
  show(mark, false);
  const update = asker(`/api/runs/${name}/report`, () => true, take, failed);
  const tables = h("details", { open: true }, h("summary", null, "Tables of the report"), list, notes);
  const node = h("section", { class: "card results", "aria-labelledby": id },
    h("div", { class: "row" }, title, mark), verdict, failed, tables, plots.node);
  return {
    node,
    verdict,
    update(run) {
      update(run);
      plots.update(run);
    },
  };
}
