// The candidates of a search: a table to sort and filter, a picture with an axis for each value, and which genes go
// with the objective.

import { h, show, table, text } from "./dom.js";
import { count, counted, number } from "./format.js";
import { axis, byChance, conditions, correlation, quantile } from "./gene.js";
import { parallel } from "./parallel.js";
import { asker, warning } from "./results.js";
import { csv, json, savers } from "./save.js";

/** The most rows of the table, genes in it, genes in the list of those that matter, and axes of the picture. */
const [ROWS_MAX, GENES_MAX, LISTED_MAX, AXES_MAX] = [500, 8, 12, 8];
/** With fewer candidates nothing is said about genes. */
const LEAST = 8;
/** The share of the candidates, the best ones, whose genes are shown as a range. */
const BEST = 0.25;

/** The candidates of an arm as objects, and its columns. */
function read({ quantities, rows }) {
  const columns = quantities.map((one, at) => ({ ...one, at }));
  const candidates = rows.map(({ replica, best, values }, id) => ({ id, replica, best, values }));
  return { columns, candidates };
}

/** The order of candidates, the best by an objective first. */
function better({ at, best }) {
  const of = ({ values }) => (values[at] === null ? Infinity : best === "least" ? values[at] : -values[at]);
  return (one, other) => of(one) - of(other);
}

/** The genes that are numbers, with their correlation with an objective: first those that go with it most. */
function weighed(columns, candidates, objective) {
  const usable = candidates.filter(({ values }) => typeof values[objective.at] === "number");
  const of = ({ at }) => usable.map(({ values }) => values[at]);
  const aims = of(objective);
  const isNumber = ({ role, at }) => role === "gene" && usable.every(({ values }) => typeof values[at] === "number");
  const genes = columns.filter(isNumber).map((gene) => ({ ...gene, goes: correlation(of(gene), aims) }));
  // Genes keep their order if nothing distinguishes them.
  return usable.length < LEAST ? genes : genes.sort((one, other) => Math.abs(other.goes) - Math.abs(one.goes));
}

/** A row of the list of genes: the correlation, and where the best candidates have the gene. */
function geneRow(gene, best, chance) {
  const values = best.map(({ values: own }) => own[gene.at]).sort((a, b) => a - b);
  const bounds = gene.low === undefined ? null : [gene.low, gene.high];
  const { low, high, place } = axis(values, bounds);
  const [from, to] = [quantile(values, 0.1), quantile(values, 0.9)];
  const range = h("span", { class: "bounds" }, h("span", { class: "range" }));
  range.firstChild.style.left = `${100 * place(from)}%`;
  range.firstChild.style.width = `${Math.max(1, 100 * (place(to) - place(from)))}%`;
  const size = h("span", { class: `weight ${gene.goes < 0 ? "minus" : "plus"}` });
  size.style.width = `${50 * Math.abs(gene.goes)}%`;
  return h("tr", { class: Math.abs(gene.goes) > chance ? null : "faint" }, h("th", { scope: "row" }, gene.name),
    h("td", { class: "number" }, number(Number(gene.goes.toFixed(2)), 2)),
    h("td", { class: "within" }, h("span", { class: "weights" }, size)),
    h("td", { class: "number soft" }, number(low)), h("td", { class: "within" }, range),
    h("td", { class: "soft" }, number(high)), h("td", null, `${number(from, 3)} to ${number(to, 3)}`));
}

/** The list of the genes that go with the objective. */
function genesOf(genes, candidates, objective) {
  if (genes.length === 0 || candidates.length < LEAST) return [];
  const sorted = [...candidates].sort(better(objective));
  const best = sorted.slice(0, Math.max(LEAST / 2, Math.ceil(BEST * sorted.length)));
  const chance = byChance(candidates.length);
  const heads = ["Gene", "Correlation", "from −1 to 1", "least", "The best quarter, within the bounds", "greatest",
    "10 to 90 %"];
  const more = genes.length - LISTED_MAX;
  const rest = more > 0 ? ` ${counted(more, "gene")} with less are left out.` : "";
  return [h("h3", null, "Which genes matter"),
    h("p", { class: "soft" }, `Spearman's rank correlation of each gene with ${objective.name} over `
      + `${counted(candidates.length, "candidate")}, from −1 to 1. Faint genes have no more than chance gives `
      + `(${number(chance, 2)}). It says what goes together in these candidates, not what causes what; a gene on which `
      + `all of them agree has no correlation, but a narrow range.${rest}`),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Which genes matter" },
      h("table", { class: "genes" }, h("thead", null, h("tr", null, ...heads.map((head, at) =>
        h("th", { scope: "col", class: at === 1 || at === 3 ? "number" : null }, head)))),
      h("tbody", null, ...genes.slice(0, LISTED_MAX).map((gene) => geneRow(gene, best, chance)))))];
}

/** The section with the candidates of a run, requested once the report says that the run is a search. */
export function candidatesOf(name) {
  let [searches, arms, arm, aim, latest, list, shown] = [false, [], 0, 0, null, null, null];
  const [failed, note] = [warning(), h("p", { class: "soft", role: "status" })];
  const draw = () => update();
  const ofArm = h("select", { id: "searched", onchange: () => { [arm, aim] = [Number(ofArm.value), 0]; fresh(); } });
  const ofAim = h("select", { id: "aim", onchange: () => { aim = Number(ofAim.value); fresh(); } });
  const filter = h("input", { type: "search", id: "conditions", autocomplete: "off", spellcheck: "false", size: "24",
    oninput: draw });
  const only = h("input", { type: "checkbox", id: "only", onchange: draw });
  const field = (label, input) => h("span", { class: "field" }, h("label", { for: input.id }, label), input);
  const [armField, aimField] = [field("Arm", ofArm), field("Objective", ofAim)];
  const controls = h("div", { class: "controls" }, armField, aimField, field("Only", filter),
    h("span", null, only, h("label", { for: "only" }, "the best of each replica")));
  const [picture, genes, rows] = [parallel((candidate) => mark(candidate)), h("div"), h("div")];
  const names = () => read(arms[arm]).columns.map((column) => column.name);
  const records = () => shown.map(({ replica, values }) => [replica, ...values]);
  const save = savers("the candidates that are shown", () => `${name}-candidates`, {
    csv: () => csv([["replica", ...names()], ...records().map((row) => row.map((value) => value ?? ""))]),
    json: () => json(shown.map(({ replica, values }) =>
      ({ replica, ...Object.fromEntries(names().map((one, at) => [one, values[at]])) }))) });
  const node = h("section", { class: "card candidates", "aria-labelledby": "candidates", hidden: true },
    h("div", { class: "row" }, h("h2", { id: "candidates" }, "Candidates"), controls), failed, note, picture.node,
    genes, rows, save);

  /** Marks a candidate of the picture in the table. */
  function mark(candidate) {
    for (const row of rows.querySelectorAll("tbody tr")) {
      row.classList.toggle("marked", candidate !== null && row.dataset.id === String(candidate.id));
    }
  }

  /** Makes the table again: another arm has other columns, another objective another order. */
  function fresh() {
    const { columns, candidates } = read(arms[arm]);
    const objectives = columns.filter(({ role }) => role === "objective");
    const objective = objectives[aim] ?? objectives[0];
    const ordered = weighed(columns, candidates, objective);
    const others = columns.filter(({ role }) => role !== "gene");
    const texts = columns.filter((one) => one.role === "gene" && !ordered.some(({ at }) => at === one.at));
    const kept = [...ordered, ...texts].slice(0, GENES_MAX);
    const column = ({ name: title, at, role }) => ({ name: title, class: "number", down: false,
      value: ({ values }) => (typeof values[at] === "number" ? number(values[at], 5) : String(values[at] ?? "–")),
      sort: ({ values }) => values[at] ?? (role === "objective" ? Infinity : "") });
    list = { objective, ordered, others, hidden: ordered.length + texts.length - kept.length,
      table: table("Table of candidates", [
        { name: "Replica", value: ({ replica, best }) => `${replica}${best ? " ★" : ""}`,
          sort: ({ replica }) => replica },
        ...[...others, ...kept].map(column)], ({ id }) => id, null, (node, { id }) => { node.dataset.id = id; }) };
    ofAim.replaceChildren(...objectives.map((one, at) => h("option", { value: at, selected: at === aim }, one.name)));
    ofArm.replaceChildren(...arms.map((one, at) => h("option", { value: at, selected: at === arm }, one.name)));
    [show(armField, arms.length > 1), show(aimField, objectives.length > 1)];
    list.table.node.setAttribute("class", "scroll dense");
    rows.replaceChildren(h("h3", null, "All of them"), list.table.node);
    update();
  }

  function update() {
    const { columns, candidates } = read(arms[arm]);
    const value = ({ values, replica }, title) =>
      (title === "replica" ? replica : values[columns.find((one) => one.name === title).at]);
    const { problem, holds } = conditions(filter.value, ["replica", ...columns.map((one) => one.name)], value);
    shown = candidates.filter((one) => (!only.checked || one.best) && holds(one)).sort(better(list.objective));
    const genesNow = weighed(columns, shown, list.objective);
    const left = arms[arm].more ? " More are in the run's files." : "";
    const part = shown.length > ROWS_MAX ? ` The table has the first ${ROWS_MAX}.` : "";
    const wide = list.hidden > 0 ? ` It leaves out ${counted(list.hidden, "gene")} that matter less.` : "";
    text(note, problem ? `The filter is not used: ${problem}.` : `${counted(shown.length, "candidate")} of `
      + `${count(candidates.length)}, the best by ${list.objective.name} first; ★ marks the best of its replica. `
      + `Filter with conditions such as ${list.objective.name} < 5.${part}${wide}${left}`);
    picture.update([...list.others, ...genesNow].slice(0, list.others.length + AXES_MAX), shown, list.objective);
    genes.replaceChildren(...genesOf(genesNow, shown, list.objective));
    list.table.update(shown.slice(0, ROWS_MAX));
  }

  const take = (found) => {
    const columnsNow = JSON.stringify(found.arms.map((one) => [one.name, one.quantities]));
    const before = JSON.stringify(arms.map((one) => [one.name, one.quantities]));
    arms = found.arms;
    show(node, arms.some((one) => one.rows.length > 0));
    if (arms.length > 0 && columnsNow !== before) fresh();
    else if (arms.length > 0) update();
  };
  const ask = asker(`/api/runs/${name}/candidates`, () => searches, take, failed);
  return {
    node,
    take(report) {
      searches = report.searches;
      if (latest) ask(latest);
    },
    update(run) {
      latest = run;
      ask(run);
    },
    end: () => picture.end(),
  };
}
