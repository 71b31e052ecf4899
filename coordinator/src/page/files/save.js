// Saves files: tables as CSV and JSON, pictures as SVG.

import { attribute, h, s } from "./dom.js";

const MEDIA = { csv: "text/csv", json: "application/json", svg: "image/svg+xml", toml: "application/toml" };
/** The properties that elements of a picture inherit from the page's style. */
const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family",
  "font-size", "font-weight"];
/** The height of the title line above a picture. */
const HEAD = 28;

function save(name, media, content) {
  const address = URL.createObjectURL(new Blob([content], { type: media }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Rows of texts and numbers as the text of a CSV file. */
export function csv(rows) {
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => `${row.map((value) => quoted(String(value))).join(",")}\n`).join("");
}

/** A value as the text of a JSON file. */
export function json(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** A picture of the page as the text of a file, with its style on the page and without elements that are left out. */
export function svg(picture, title, leftOut) {
  const copy = picture.cloneNode(true);
  const [all, copies] = [picture, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  all.forEach((element, index) => {
    const look = getComputedStyle(element);
    for (const name of LOOKS) copies[index].setAttribute(name, look.getPropertyValue(name));
  });
  copy.querySelectorAll(leftOut).forEach((element) => element.remove());
  const { width, height } = picture.viewBox.baseVal;
  const colour = getComputedStyle(picture.closest(".card"));
  // On the page, a heading serves as the title.
  const [y, whole] = [-HEAD, height + HEAD];
  copy.prepend(s("title", null, title), s("rect", { y, width, height: whole, fill: colour.backgroundColor }),
    s("text", { x: 12, y: 18 - HEAD, "font-family": colour.fontFamily, "font-size": 14, fill: colour.color }, title));
  const size = { viewBox: `0 ${y} ${width} ${whole}`, width, height: whole, "aria-hidden": null };
  Object.entries(size).forEach(([name, value]) => attribute(copy, name, value));
  return `${new XMLSerializer().serializeToString(copy)}\n`;
}

/** Buttons that save something under a name. `contents` has a function that makes the content for each extension. */
export function savers(what, name, contents) {
  const button = ([ending, content]) => {
    const label = ending.toUpperCase();
    const press = () => save(`${name()}.${ending}`, MEDIA[ending], content());
    return h("button", { type: "button", "aria-label": `Save as ${label}: ${what}`, onclick: press }, label);
  };
  return h("p", { class: "savers" }, "Save as ", ...Object.entries(contents).map(button));
}

/** The same for a list of records with the same names: CSV with a column for each name, and JSON. */
export function listSavers(what, name, records) {
  const rows = () => {
    const [all, names] = [records(), Object.keys(records()[0] ?? {})];
    return [names, ...all.map((record) => names.map((one) => record[one] ?? ""))];
  };
  return savers(what, name, { csv: () => csv(rows()), json: () => json(records()) });
}
