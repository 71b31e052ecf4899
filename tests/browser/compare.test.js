// Two runs compared: differences, overlaid curves, digests, tests and results, while the runs continue and at their ends; by
// keyboard, with axe.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { until } from "./cluster.js";
import { accessible, allAccessible, begin, blameless, cluster, end, file, open } from "./tabs.js";

const TABLES = `experiment = "invincible"
seed = 3
replicas = 3
[settings]
population = 60
games = 200
generations = 20
slice = 20
[arms."loss costs 1"]
penalty = 1
[arms."loss costs 6.5"]
penalty = 6.5
`;
const OTHER = TABLES.replace("seed = 3", "seed = 4").replace("population = 60", "population = 90");
const RUNS = {
  first: TABLES,
  again: TABLES,
  other: OTHER,
  "same-seed": TABLES.replace("penalty = 6.5", "penalty = 5"),
  "long-one": TABLES.replace("generations = 20", "generations = 100000"),
  "long-two": OTHER.replace("generations = 20", "generations = 100000"),
  dispatch: "experiment = \"dispatch\"\n[settings]\nrounds = 2\ntasks = 2\n",
};

before(async () => {
  await begin();
  cluster.worker("ant");
  for (const [name, text] of Object.entries(RUNS)) await cluster.evoxo("submit", file(`${name}.toml`, text));
  for (const name of ["first", "again", "other", "same-seed", "dispatch"]) {
    await until(`${name} ends`, async () => (await cluster.run(name)).state === "finished");
  }
});

after(end);

/** The texts of a visible table's rows. */
function cells(tab, label) {
  const rows = tab.getByRole("region", { name: label, exact: true }).locator("tr");
  return rows.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
}

/** The row with this name. */
async function row(tab, label, name) {
  return (await cells(tab, label)).find(([first]) => first === name);
}

test("another run is chosen by keyboard, and the differences are shown", async () => {
  const tab = await open("#/runs/first");
  const choice = tab.getByLabel("Compare with");
  await choice.focus();
  await choice.selectOption("other");
  assert.equal(new URL(tab.url()).hash, "#/runs/first");
  await tab.getByRole("button", { name: "Compare" }).press("Enter");
  await tab.getByRole("heading", { level: 1, name: "first and other" }).waitFor();
  assert.match(tab.url(), /#\/runs\/first\/with\/other$/);
  const runs = await Promise.all(["first", "other"].map((name) => cluster.run(name)));
  const short = (of) => runs.map((run) => `${of(run).slice(0, 10)}…`);
  const glance = (name) => row(tab, "Both runs at a glance", name);
  assert.deepEqual(await glance("Digest"), ["Digest", ...short((run) => run.digest), "differ"]);
  await tab.getByText("The configurations differ.").waitFor();
  await tab.getByRole("region", { name: "Settings of both runs", exact: true }).waitFor();
  const [head, ...settings] = await cells(tab, "Settings of both runs");
  assert.deepEqual(head.slice(0, 3), ["Setting", "A first", "B other"]);
  assert.deepEqual(settings.map((cell) => cell.slice(0, 3)), [["seed", "3", "4"], ["population", "60", "90"]]);
  // Both results, each as on its own page.
  for (const [index, name] of ["first", "other"].entries()) {
    const part = tab.getByRole("region", { name: `${"AB"[index]} ${name}: results`, exact: true });
    const told = await (await fetch(`http://${cluster.address}/api/runs/${name}/report`)).json();
    await part.getByText(told.conclusion).waitFor();
    assert.equal(await part.locator(".result table").count(), told.tables.length);
  }
  await accessible(tab, "two runs");
  await tab.context().close();
});

test("curves are overlaid, can be told apart without colours, and are saved", async () => {
  const tab = await open("#/runs/first/with/other");
  await tab.getByText("percentile; of 12 replicas").waitFor();
  const paths = tab.locator("path.line.c0, path.line.c1, path.line.c2, path.line.c3");
  const drawn = () => tab.locator(".picture path.line").count();
  assert.ok(await paths.count() >= 4);
  assert.equal(await drawn(), 4);
  assert.ok(await tab.locator(".picture .c2 .ring").count() > 1);
  assert.equal(await tab.locator(".picture .c0 .ring, .picture .c1 .ring").count(), 0);
  const chart = tab.getByRole("slider", { name: /by generation/ });
  await chart.press("Home");
  const told = await chart.getAttribute("aria-valuetext");
  for (const arm of ["A loss costs 1 ", "B loss costs 1 ", "B loss costs 6.5 "]) assert.ok(told.includes(arm), told);
  const arm = tab.getByRole("button", { name: /^B loss costs 6.5/ });
  await arm.press("Space");
  assert.equal(await drawn(), 3);
  await tab.getByRole("button", { name: "None" }).press("Enter");
  assert.equal(await drawn(), 0);
  await tab.getByRole("button", { name: "All arms" }).press("Enter");
  assert.equal(await drawn(), 4);
  const save = tab.getByRole("button", { name: "Save as CSV: the curves that are shown" });
  const [download] = await Promise.all([tab.waitForEvent("download"), save.press("Enter")]);
  assert.equal(download.suggestedFilename(), "first-with-other-worth.csv");
  const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\n");
  assert.match(lines[0], /^run,arm,row,x,/);
  assert.deepEqual([lines.length, lines.filter((line) => line.startsWith("other,loss costs 6.5,")).length], [81, 20]);
  await tab.context().close();
});

test("a test is shown where it applies; elsewhere the reason is shown", async () => {
  const tab = await open("#/runs/first/with/other");
  const tests = tab.getByRole("region", { name: "Tests of both runs" });
  await tests.getByRole("rowheader", { name: "loss costs 6.5" }).waitFor();
  const told = await (await fetch(`http://${cluster.address}/api/runs/first/comparison?with=other`)).json();
  const [head, ...rows] = await cells(tab, "Tests of both runs");
  assert.deepEqual(head, ["Arm", "A first", "B other", "B − A", "P"]);
  assert.deepEqual(rows.map((cell) => cell[0]), told.tests.map((one) => one.arm));
  const good = ([, one, , , p]) => one.endsWith(" (n 3)") && /^(0\.\d{4}|1\.0000|< 0\.0001)$/.test(p);
  assert.ok(rows.every(good), rows.join("|"));
  await tab.getByText("corrected for 2 tests by Holm's method").waitFor();
  const other = await open("#/runs/first/with/same-seed");
  await other.getByText(/^There is no test: both runs have the seed 3/).waitFor();
  await Promise.all([tab, other].map((one) => one.context().close()));
});

test("one configuration computed twice has equal digests and no differing settings", async () => {
  const tab = await open("#/runs/first/with/again");
  await tab.getByText("One configuration was computed twice, and its results are the same, bit for bit.").waitFor();
  for (const name of ["Configuration", "Digest"]) {
    assert.equal((await row(tab, "Both runs at a glance", name)).at(-1), "equal");
  }
  await tab.getByText("None: all settings are equal.").waitFor();
  await tab.context().close();
});

test("two runs are followed while both continue", async () => {
  const tab = await open("#/runs/long-one/with/long-two");
  await tab.getByText(/^There is no test: the final values of all replicas are compared/).waitFor();
  assert.deepEqual((await row(tab, "Both runs at a glance", "Digest")).slice(1), ["–", "–", "not yet known"]);
  await until("both runs have curves", async () => await tab.locator(".picture .c2 .ring").count() > 0);
  const seen = async () => JSON.stringify([await row(tab, "Both runs at a glance", "Rounds"),
    await tab.locator(".picture path.line.c0").getAttribute("d"),
    await tab.locator(".picture path.line.c2").getAttribute("d")]);
  const parts = JSON.parse(await seen());
  const moved = async () => JSON.parse(await seen()).every((part, index) => String(part) !== String(parts[index]));
  await until("everything is updated", moved);
  await accessible(tab, "two unfinished runs");
  for (const name of ["long-one", "long-two"]) await cluster.evoxo("cancel", name);
  const states = async () => (await row(tab, "Both runs at a glance", "State")).slice(1, 3).join();
  await until("both runs are cancelled", async () => (await states()) === "cancelled,cancelled");
  await tab.context().close();
});

test("different experiments, a run with itself, and runs that do not exist", async () => {
  const tab = await open("#/runs/first/with/dispatch");
  await tab.getByText(/^The experiments differ/).waitFor();
  await tab.getByRole("region", { name: "B dispatch: results" }).waitFor();
  assert.equal(await tab.locator(".picture").count(), 0);
  await accessible(tab, "different experiments");
  for (const [hash, words] of [["first/with/first", "This is the same run twice"], ["first/with/none", "There is no run none"],
    ["none/with/nothing", "There is no run none and no run nothing"]]) {
    await tab.goto(`http://${cluster.address}/#/runs/${hash}`);
    await tab.getByText(words).waitFor();
    await accessible(tab, hash);
  }
  await tab.context().close();
});

test("two runs in light, dark and on a phone", async () => {
  await allAccessible("two runs", "#/runs/first/with/other", async (tab) => {
    await tab.getByText("percentile; of 12 replicas").waitFor();
    await tab.getByRole("region", { name: "Tests of both runs" }).waitFor();
    await tab.locator(".result table").nth(2).waitFor();
  });
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
