// The curves of one run, or of two in one picture, with controls for the column, the axis and the arms, a table of
// the numbers, and files.

import { chart } from "./chart.js";
import { attribute, h, keyed, show, text } from "./dom.js";
import { counted, number } from "./format.js";
import { get, state } from "./live.js";
import { sample } from "./plot.js";
import { values } from "./runs.js";
import { csv, json, savers, svg } from "./save.js";

/** The time between two requests for new curves. */
const ASK_MS = 2500;
/** The most rows of the table of numbers. */
const ROWS = 40;
/** If the beginning makes the rest this much flatter, the picture is zoomed at first. */
const FLAT = 2.5;
/** If the means span more powers of ten, the axis is logarithmic at first, as in the plots of a report. */
const DECADES = 2;

/** A button that shows or hides an arm. */
function toggle(first, hidden, draw) {
  const { index } = first;
  const [label, value] = [h("span", { class: "name" }), h("span", { class: "value" })];
  const press = () => {
    if (!hidden.delete(index)) hidden.add(index);
    draw();
  };
  const button = h("button", { type: "button", onclick: press }, sample(first), label, value);
  return {
    node: h("li", null, button),
    update(arm) {
      attribute(button, "aria-pressed", String(!hidden.has(index)));
      text(label, arm.name);
      text(value, arm.mean.length > 0 ? number(arm.mean.at(-1)) : "–");
    },
  };
}

/** The numbers of the arms as a table, with a row for each x. */
function rows(arms, xName) {
  const xs = [...new Set(arms.flatMap((arm) => arm.x))].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(xs.length / ROWS));
  const chosen = xs.filter((_, index) => index % step === 0 || index === xs.length - 1);
  const cell = (arm, x) => {
    const at = arm.x.indexOf(x);
    const figures = () => `${number(arm.mean[at], 5)} (${number(arm.low[at], 3)} to ${number(arm.high[at], 3)})`;
    return h("td", { class: "number" }, at < 0 ? "" : figures());
  };
  const heads = arms.map((arm) => h("th", { scope: "col", class: "number" }, arm.name));
  const row = (x) => h("tr", null, h("th", { scope: "row" }, number(x, 6)), ...arms.map((arm) => cell(arm, x)));
  return h("table", null, h("thead", null, h("tr", null, h("th", { scope: "col" }, xName), ...heads)),
    h("tbody", null, ...chosen.map(row)));
}

/** The numbers of the arms as a CSV file. For two runs each line names its run. `middle` is "mean" or "median". */
function lines(arms, runs, middle) {
  const of = (arm) => (runs.length > 1 ? [arm.run] : []);
  const line = (arm, x, at) =>
    [...of(arm), arm.arm, arm.row[at] + 1, x, arm.mean[at], arm.low[at], arm.high[at], arm.count[at]];
  const head = [...(runs.length > 1 ? ["run"] : []), "arm", "row", "x", middle, "low", "high", "replicas"];
  return csv([head, ...arms.flatMap((arm) => arm.x.map((x, at) => line(arm, x, at)))]);
}

/** The numbers as JSON: the lists of each arm. */
function lists(arms, runs, column, middle) {
  const list = ({ arm, row, x, mean, low, high, count }) =>
    ({ name: arm, row, x, [middle]: mean, low, high, replicas: count });
  const of = ({ name }) => ({ run: name, column, arms: arms.filter((arm) => arm.run === name).map(list) });
  return json(runs.length > 1 ? runs.map(of) : of(runs[0]));
}

/** The arms of all runs. With two runs, names start with a letter, and the second run's curves have rings. */
function joined(runs, answers) {
  const of = ({ name, letter }, run) => answers[run].arms.map((arm) =>
    ({ ...arm, mean: arm.mean ?? arm.median, run: name, arm: arm.name,
      name: letter ? `${letter} ${arm.name}` : arm.name, ringed: run > 0 }));
  return answers.length > 0 ? runs.flatMap(of).map((arm, index) => ({ ...arm, index })) : [];
}

/** The controls above the picture. */
function controls(columns, column, chosen, drawn, middled) {
  const names = columns.map((one, index) =>
    h("option", { value: index, selected: index === column }, one.name));
  // The first column is the horizontal axis.
  const choice = h("select", { id: "column", onchange: () => chosen(Number(choice.value)) },
    ...names.slice(names.length > 1 ? 1 : 0));
  const box = (id, changed) => h("input", { type: "checkbox", id, onchange: changed });
  const [log, zoom] = [box("log", middled), box("zoom", drawn)];
  const node = h("div", { class: "controls" }, h("label", { for: "column" }, "Show"), choice,
    h("span", null, log, h("label", { for: "log" }, "logarithmic")),
    h("span", null, zoom, h("label", { for: "zoom" }, "without the beginning")));
  return { node, log, zoom };
}

/**
 * The section with the curves of a run, or of two runs of one experiment. Each has a `name` and `details`, and a
 * `letter` if there are two.
 */
export function curvesOf(...runs) {
  const hidden = new Set();
  const { columns, primary } = runs[0].details;
  let [answers, column, asked, busy, seen, fresh] = [[], primary, 0, false, "", true];
  /** What the lines are: medians on a logarithmic axis, where one slow replica would decide the mean. */
  let middle = "mean";
  const picture = chart();
  const chosen = (index) => {
    [column, fresh] = [index, true];
    load();
  };
  const above = controls(columns, column, chosen, () => draw(), () => load());
  const [meaning, note] = [h("p", { class: "soft" }), h("p", { class: "soft" })];
  const failed = h("p", { class: "warning", role: "status" });
  const legend = h("ul", { class: "legend", "aria-label": "Arms shown" });
  const listed = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Figures of the curves" });
  const shownColumn = () => columns[column].name;
  const names = runs.map((run) => run.name);
  const save = savers("the curves that are shown", () => `${names.join("-with-")}-${shownColumn()}`, {
    csv: () => lines(visible(), runs, middle),
    json: () => lists(visible(), runs, shownColumn(), middle),
    svg: () => svg(picture.picture, `${shownColumn()} of ${title()}`, ".cursor"),
  });
  const title = () => runs.map(({ name, letter }) => (letter ? `${letter}: ${name}` : name)).join(", ");
  const figures = h("details", { ontoggle: () => draw() }, h("summary", null, "The figures as a table"), listed);
  const all = (shown) => {
    hidden.clear();
    if (!shown) arms().forEach((arm) => hidden.add(arm.index));
    draw();
  };
  const both = h("div", { class: "buttons" },
    h("button", { type: "button", onclick: () => all(true) }, "All arms"),
    h("button", { type: "button", onclick: () => all(false) }, "None"));
  const many = runs.reduce((sum, run) => sum + run.details.arms.length, 0) > 2;
  const node = h("section", { class: "card", "aria-labelledby": "curves" },
    h("div", { class: "row" }, h("h2", { id: "curves" }, "Curves"), above.node), meaning, failed, picture.node,
    h("div", { class: "row" }, legend, many && both), note, save, figures);

  const arms = () => joined(runs, answers);
  const visible = () => arms().filter((arm) => !hidden.has(arm.index));

  function draw() {
    text(meaning, columns[column].doc);
    const [xName, shown] = [columns[0].name, visible()];
    const whole = shown.every((arm) => arm.x.every(Number.isInteger));
    const data = { arms: shown, xName, yName: shownColumn(), log: middle === "median", whole };
    const drawn = picture.update({ ...data, zoom: above.zoom.checked });
    if (fresh && !busy && drawn && drawn.arms.length > 0) {
      // A new column first gets the axis that shows most of it; after that the viewer decides.
      fresh = false;
      above.log.checked = drawn.decades > DECADES;
      above.zoom.checked = !above.log.checked && drawn.gain > FLAT;
      if (above.log.checked) return load();
      picture.update({ ...data, zoom: above.zoom.checked });
    }
    if (answers.length === 0) return;
    keyed(legend, arms(), (arm) => `${arm.index} ${arm.name}`, (arm) => toggle(arm, hidden, draw));
    const without = answers.reduce((sum, answer) => sum + answer.left_out, 0);
    const left = without > 0 ? ` ${counted(without, "replica")} left out because there are too many.` : "";
    const begun = arms().reduce((sum, arm) => sum + arm.replicas, 0);
    const rings = runs.length > 1 ? ` Lines with rings: ${runs[1].letter}, ${runs[1].name}.` : "";
    const what = middle === "median" ? "median over replicas; band: quartiles"
      : "mean over replicas; band: 10th to 90th percentile";
    const lines = `Line: ${what}; of ${counted(begun, "replica")}. `
      + `A finished replica keeps its last row.${rings}${left}`;
    [picture.node, save, figures].forEach((part) => show(part, begun > 0));
    text(note, begun === 0 ? `Curves begin with the first checkpoint. ${soFar()}` : lines);
    if (figures.open) listed.replaceChildren(rows(shown, xName));
  }

  /** What is known before anything is stored. */
  function soFar() {
    const known = names.map((name) => values(state.runs.get(name) ?? { arms: [] })).filter(Boolean).join("; ");
    return known && `So far: ${known}.`;
  }

  async function load() {
    const [wanted, lines] = [column, !fresh && above.log.checked ? "median" : "mean"];
    [busy, asked] = [true, Date.now()];
    try {
      const path = (name) => `/api/runs/${name}/curves?column=${wanted}&middle=${lines}`;
      const found = await Promise.all(names.map((name) => get(path(name))));
      const latest = wanted === column && lines === (!fresh && above.log.checked ? "median" : "mean");
      if (latest) [answers, middle] = [found, lines];
      text(failed, "");
    } catch (error) {
      text(failed, `The curves cannot be shown: ${error.message}.`);
      seen = "";
    }
    show(failed, Boolean(failed.textContent));
    busy = false;
    if (node.isConnected) draw();
  }

  return {
    node,
    end: () => picture.end(),
    update(...states) {
      // Rounds are stored a little later, so curves are requested once more after a run has stopped.
      const now = states.map((run) => `${run.rounds_done} ${run.state} ${run.replicas_finished}`).join();
      if (answers.length > 0 && arms().every((arm) => arm.replicas === 0)) draw();
      const since = Date.now() - asked;
      if (busy || since < ASK_MS || (now === seen && since < 4 * ASK_MS)) return;
      seen = now;
      load();
    },
  };
}
