// The results of a run on the page: conclusion, tables and plots of its report, while the run continues and at its end;
// files, keyboard, axe.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { until } from "./cluster.js";
import { accessible, allAccessible, begin, blameless, cluster, end, file, open } from "./tabs.js";

const TABLES = `experiment = "invincible"
seed = 3
replicas = 3
[settings]
population = 100
games = 200
generations = 30
slice = 20
[arms."loss costs 1"]
penalty = 1
[arms."loss costs 6.5"]
penalty = 6.5
`;
const LEAGUE = `experiment = "league"
replicas = 1
[settings]
game = "score-four"
pairs = 40000
pairs_a_round = 1
[[players]]
who = "random"
[[players]]
who = "filtered"
[[players]]
who = "benchmark"
[[players]]
who = "alpha-beta:2"
`;

before(async () => {
  await begin();
  cluster.worker("ant");
  await cluster.evoxo("submit", file("tables.toml", TABLES));
  await cluster.evoxo("submit", file("long.toml", TABLES.replace("generations = 30", "generations = 100000")));
  await cluster.evoxo("submit", file("league.toml", LEAGUE));
  await until("tables ends", async () => (await cluster.run("tables")).state === "finished");
});

after(end);

/** The name and content of the file that a button saves. */
async function saved(tab, button) {
  const [download] = await Promise.all([tab.waitForEvent("download"), button.press("Enter")]);
  return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
}

/** The texts of a visible table. */
function cells(table) {
  return table.locator("tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
}

/** The values of a CSV file; they contain no line ends. */
function values(csv) {
  const cell = (text) => (text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text);
  return csv.trimEnd().split("\n").map((line) => line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map((part) =>
    cell(part.replace(/,$/, ""))).slice(0, line.endsWith(",") ? undefined : -1));
}

test("a finished run has the tables of its report, each as files", async () => {
  const tab = await open("#/runs/tables");
  await tab.getByRole("heading", { name: "Results", exact: true }).waitFor();
  await tab.getByText("The same as evoxo report prints.").waitFor();
  await tab.getByText(/ never loses in /).waitFor();
  assert.equal(await tab.locator(".results .badge").isVisible(), false);
  const told = await (await fetch(`http://${cluster.address}/api/runs/tables/report`)).json();
  const tables = tab.locator(".results .result table");
  assert.equal(await tables.count(), told.tables.length);
  assert.ok(told.tables.length > 1);
  for (const [index, { title, header, rows }] of told.tables.entries()) {
    assert.deepEqual(await cells(tables.nth(index)), [header, ...rows]);
    const button = (ending) => tab.getByRole("button", { name: `Save as ${ending}: ${title}`, exact: true });
    const [name, csv] = await saved(tab, button("CSV"));
    assert.deepEqual([name, values(csv)], [`tables-table-${index + 1}.csv`, [header, ...rows]]);
    const [, json] = await saved(tab, button("JSON"));
    const { state, run, ...rest } = JSON.parse(json);
    assert.deepEqual([state, run], ["finished", "tables"]);
    assert.deepEqual([rest.title, rest.header, rest.rows], [title, header, rows]);
  }
  await tab.getByText("Plots of the report").press("Enter");
  const plot = tab.locator(".results .drawn svg").first();
  await plot.waitFor();
  const [name, svg] = await saved(tab, tab.getByRole("button", { name: /^Save as SVG: (?!the curves)/ }).first());
  assert.match(name, /^tables-[a-z0-9_-]+\.svg$/);
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[^]*<\/svg>\n$/);
  await accessible(tab, "results with plots");
  await tab.context().close();
});

test("curves are saved as they are shown", async () => {
  const tab = await open("#/runs/tables");
  await tab.locator("path.line.c1").first().waitFor();
  const button = (ending) => tab.getByRole("button", { name: `Save as ${ending}: the curves that are shown` });
  const [csvName, csv] = await saved(tab, button("CSV"));
  assert.match(csvName, /^tables-[a-z ]+\.csv$/);
  assert.equal(values(csv).length, 1 + 2 * 30);
  assert.equal(JSON.parse((await saved(tab, button("JSON")))[1]).arms.length, 2);
  await tab.getByRole("button", { name: /^loss costs 6.5/ }).press("Space");
  assert.equal(values((await saved(tab, button("CSV")))[1]).length, 1 + 30);
  const [svgName, svg] = await saved(tab, button("SVG"));
  assert.match(svgName, /\.svg$/);
  // The file includes its styles and the shown curve.
  assert.match(svg, /stroke="rgb\(/);
  assert.equal(svg.match(/class="line c\d"/g).length, 1);
  await tab.context().close();
});

test("an unfinished run has tables that are marked as such and updated in place", async () => {
  const tab = await open("#/runs/long");
  await tab.getByRole("heading", { name: "Results so far" }).waitFor();
  await tab.locator(".results .badge").getByText("unfinished").waitFor();
  await tab.getByText(/^No replica is finished yet\. .*So far /).waitFor();
  const conclusion = tab.locator(".conclusion");
  const first = await conclusion.textContent();
  const scroll = tab.locator(".results .scroll").first();
  await scroll.focus();
  await until("the report is updated", async () => (await conclusion.textContent()) !== first);
  // The keyboard focus stays where it is.
  assert.equal(await scroll.evaluate((node) => node === document.activeElement), true);
  const [name, json] = await saved(tab, tab.getByRole("button", { name: /^Save as JSON: (?!the curves)/ }).first());
  assert.deepEqual([name, JSON.parse(json).state], ["long-unfinished-table-1.json", "unfinished"]);
  await accessible(tab, "results so far");
  await tab.context().close();
});

test("a league has its ratings while it is played", async () => {
  const tab = await open("#/runs/league");
  await tab.getByRole("heading", { name: "Results so far" }).waitFor();
  const ratings = tab.locator(".results table").first();
  await until("ratings have intervals", async () => (await cells(ratings)).some((row) => /^[−+-]?\d+ to /.test(row[2])));
  const [header, ...rows] = await cells(ratings);
  assert.deepEqual([header[0], header[2], rows.length], ["player", "95 % interval", 4]);
  await tab.locator(".ratings .range").first().waitFor({ state: "attached" });
  assert.equal(await tab.locator(".ratings circle").count(), 4);
  await tab.context().close();
});

test("a finished league begins with its conclusion and its ratings, without curves of its progress", async () => {
  await cluster.evoxo("submit", file("short.toml", LEAGUE.replace("40000", "20")));
  await until("it ends", async () => (await cluster.run("short")).state === "finished");
  for (const width of [1280, 360]) {
    const tab = await open("#/runs/short", { viewport: { width, height: 800 } });
    await tab.locator(".verdict").getByText(/highest rating of 4 players/).waitFor();
    const picture = tab.getByRole("img", { name: /^Ratings of 4 players, .* first/ });
    await picture.waitFor();
    const { y } = await picture.boundingBox();
    assert.ok(y > (await tab.locator(".verdict").boundingBox()).y && y < 700, `the picture is at ${y}`);
    assert.equal(await tab.getByRole("heading", { name: "Curves" }).isVisible(), false);
    await accessible(tab, `a finished league, ${width}`);
    await tab.context().close();
  }
});

test("pointing at curves covers none of them", async () => {
  const tab = await open("#/runs/tables");
  await tab.locator("path.line.c1").first().waitFor();
  await tab.locator(".chart").hover();
  const [tip, chart] = [await tab.locator(".tip").boundingBox(), await tab.locator(".picture").first().boundingBox()];
  assert.ok(tip.y >= chart.y + chart.height - 1, `the figures begin at ${tip.y}, the picture ends at ${chart.y + chart.height}`);
  await tab.context().close();
});

test("a report that is too large is replaced by a message, and the page still works", async () => {
  const large = "experiment = \"dispatch\"\nreplicas = 1001\n[settings]\nrounds = 1\ntasks = 1\n";
  await cluster.evoxo("submit", file("large.toml", large));
  const tab = await open("#/runs/large");
  await tab.getByText(/The report cannot be shown: this run has more than 1000 replicas/).first().waitFor();
  await tab.locator(".head .badge.finished").waitFor();
  await accessible(tab, "too much");
  await tab.context().close();
});

test("results in light, dark and on a phone", async () => {
  const ready = async (tab) => {
    await tab.locator(".results table").first().waitFor();
    await tab.getByText("Plots of the report").click();
    await tab.locator(".results .drawn svg").first().waitFor();
  };
  await allAccessible("results", "#/runs/tables", ready);
  const ratings = (tab) => tab.locator(".results table").nth(2).waitFor();
  await allAccessible("a league", "#/runs/league", ratings);
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
