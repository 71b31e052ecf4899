// One candidate of a search: its values, its genes as bars within their bounds, and buttons that copy it.

import { h, text } from "./dom.js";
import { number } from "./format.js";
import { axis } from "./gene.js";
import { get } from "./live.js";

/** The most genes with a bar, also on the page of a run, and the most letters of a gene that is a text. */
const [GENES_MAX, FEW_MAX] = [60, 12];
const LETTERS_MAX = 80;
const COPIED_MS = 2000;

/** A value of JSON as Python writes it. */
export function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
}

/** A button that copies a text. Over plain HTTP from another host there is no clipboard, and no button. */
function copier(label, content) {
  if (!navigator.clipboard) return null;
  const button = h("button", { type: "button", class: "small", onclick: async () => {
    await navigator.clipboard.writeText(content());
    text(button, "Copied");
    setTimeout(() => text(button, label), COPIED_MS);
  } }, label);
  return button;
}

/** The genes of a card with the names of the columns: bits and texts are one gene. */
function genesOf(card, quantities) {
  const genes = quantities.filter(({ role }) => role === "gene");
  const all = Object.entries(card.genes).flatMap(([part, values]) => {
    const whole = !Array.isArray(values) || genes.some(({ name }) => name === part && values.length > 1);
    if (whole) return [{ name: part, value: Array.isArray(values) ? values.join("") : values }];
    return values.map((value, at) => ({ name: values.length > 1 ? `${part}[${at}]` : part, value }));
  });
  const known = new Map(genes.map((gene) => [gene.name, gene]));
  return all.map((gene) => ({ ...known.get(gene.name), ...gene }));
}

/** A gene's row: name, bar between the bounds, value. */
function row({ name, value, low, high }) {
  const bounded = typeof value === "number" && low !== undefined && high > low;
  const place = bounded ? 100 * axis([], [low, high]).place(value) : 0;
  const bar = h("span", { class: "bounds", title: bounded ? `from ${number(low)} to ${number(high)}` : null },
    h("span", { class: "at", style: null }));
  bar.firstChild.style.left = `${place}%`;
  const said = typeof value === "number" ? number(value, 5) : String(value);
  const short = said.length > LETTERS_MAX ? `${said.slice(0, LETTERS_MAX - 1)}…` : said;
  return h("tr", null, h("th", { scope: "row" }, name), h("td", { class: "number" }, short),
    h("td", { class: "soft number" }, bounded ? number(low) : ""), h("td", { class: "within" }, bounded && bar),
    h("td", { class: "soft" }, bounded ? number(high) : ""));
}

/**
 * The nodes that show a candidate; null if the champion is not one. The first argument is the answer about a champion.
 * Of more genes than `most`, `link` leads to all.
 */
export function candidateOf({ card: written, quantities }, most = GENES_MAX, link = null) {
  const card = written ? JSON.parse(written) : null;
  if (card?.kind !== "candidate") return null;
  const genes = genesOf(card, quantities);
  const value = ([name, of]) => h("div", null, h("dt", null, name), h("dd", null, number(of, 6)));
  const broken = card.violation ? [["constraints are broken by", card.violation]] : [];
  const values = [card.objectives, card.constraints, card.measures].flatMap((some) => Object.entries(some ?? {}));
  const head = ["gene", "value", "least", "within its bounds", "greatest"].map((name, at) =>
    h("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, name));
  const left = genes.length - most;
  const rest = left > 0 && h("p", { class: "soft" }, link ? h("a", { href: link }, `All ${genes.length} genes`)
    : `And ${left} more genes: the copies have all of them.`);
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Genes of the candidate" },
    h("table", { class: "genes" }, h("thead", null, h("tr", null, ...head)),
      h("tbody", null, ...genes.slice(0, most).map(row))));
  const copies = h("p", { class: "savers" }, copier("Copy as Python", () => python(card.genes)),
    copier("Copy as JSON", () => JSON.stringify(card, null, 2)));
  return [h("dl", { class: "figures" }, ...[...values, ...broken].map(value)), table, rest, copies].filter(Boolean);
}

/** The section with the best candidate of a run, once the report names its replica. */
export function bestOf(name) {
  const place = h("div");
  const title = h("h2", { id: "best" }, "Best candidate");
  const node = h("section", { class: "card", "aria-labelledby": "best", hidden: true }, title, place);
  let shown = "";
  return {
    node,
    /** Takes a report, and the names of the arms. */
    async take({ best, searches, state, finished }, arms) {
      const [arm, replica] = [best.arm ?? 0, best.replicas[best.arm ?? 0] ?? null];
      const now = `${arm}/${replica} ${state} ${finished}`;
      // An unfinished search goes on, so its best candidate is asked for with each report.
      if (!searches || replica === null || (shown === now && state !== "unfinished")) return;
      shown = now;
      const found = await get(`/api/runs/${name}/champion?arm=${arm}&replica=${replica}`).catch(() => null);
      const parts = found && candidateOf(found, FEW_MAX, `#/runs/${name}/champions/${arm}/${replica}`);
      if (!parts || shown !== now) return;
      const of = arms.length > 1 ? ` of ${arms[arm]?.name}` : "";
      const [first, second] = found.quantities.filter(({ role }) => role === "objective");
      const what = second ? `A candidate of the front, the best by ${first.name}` : "Best candidate";
      text(title, `${what}${state === "unfinished" ? " so far" : ""}${of}, replica ${replica}`);
      place.replaceChildren(...parts);
      node.hidden = false;
    },
  };
}
