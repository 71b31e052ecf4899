// Searches on the page: the best candidate, the table of candidates, which genes matter, medians on logarithmic axes;
// notes and deletion of runs; MENACE's matchboxes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { until } from "./cluster.js";
import { boxesOf, boxOf } from "./files/boxes.js";
import { accessible, allAccessible, begin, blameless, cluster, end, file, open } from "./tabs.js";

const SEARCH = `experiment = "evolve"
seed = 3
replicas = 3
[settings]
problem = "rosenbrock"
length = 10
algorithm = "ga"
population = 30
evaluations = 3000
[arms.ga]
[arms.random]
algorithm = "random"
`;
const FRONT = `experiment = "evolve"
replicas = 2
[settings]
problem = "zdt1"
algorithm = "nsga2"
evaluations = 2000
[arms.nsga2]
`;
// The first arm falls by many powers of ten, at a different pace in each replica.
const FAST = `experiment = "evolve"
replicas = 5
[settings]
problem = "rosenbrock"
length = 6
algorithm = "cma-es"
evaluations = 6000
[arms.cma-es]
`;
const BOXES = `experiment = "menace"
replicas = 1
[settings]
games = 400
[arms.perfect]
opponent = "perfect"
`;

before(async () => {
  await begin();
  cluster.worker("ant");
  for (const [name, text] of Object.entries({ search: SEARCH, front: FRONT, fast: FAST, boxes: BOXES })) {
    await cluster.evoxo("submit", file(`${name}.toml`, text));
  }
  const over = async (name) => (await cluster.run(name)).state === "finished";
  for (const name of ["search", "front", "fast", "boxes"]) await until(`${name} ends`, () => over(name));
});

after(end);

const asked = async (path) => (await fetch(`http://${cluster.address}/api/${path}`)).json();
const rows = (tab) => tab.getByRole("region", { name: "Table of candidates" }).locator("tbody tr");
const cells = (tab, row) => rows(tab).nth(row).locator("th, td").allTextContents();
/** A number as the page writes it. */
const read = (text) => Number(text.replaceAll(",", "").replace("−", "-"));

test("the best candidate is shown as named genes within their bounds, and can be copied", async () => {
  const tab = await open("#/runs/search");
  await tab.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tab.getByRole("heading", { name: /^Best candidate of ga, replica \d$/ }).waitFor();
  const genes = tab.getByRole("region", { name: "Genes of the candidate" });
  assert.equal(await genes.locator("tbody tr").count(), 10);
  assert.match((await genes.locator("tbody tr").first().allTextContents())[0], /^x\[0\]−?[\d.]+−5\s*10$/);
  const { best } = await asked("runs/search/report");
  const { card } = await asked(`runs/search/champion?arm=0&replica=${best.replicas[0]}`);
  await tab.getByRole("button", { name: "Copy as Python" }).click();
  await tab.getByRole("button", { name: "Copied" }).waitFor();
  const copied = () => tab.evaluate(() => navigator.clipboard.readText());
  assert.deepEqual(JSON.parse(await copied()), JSON.parse(card).genes);
  await tab.getByRole("button", { name: "Copy as JSON" }).click();
  await until("JSON is copied", async () => (await copied()).includes("\"kind\""));
  assert.deepEqual(JSON.parse(await copied()), JSON.parse(card));
  await tab.goto(`${cluster.origin}/#/runs/search/champions/0/${best.replicas[0]}`);
  await tab.getByRole("button", { name: "Copy as Python" }).waitFor();
  await accessible(tab, "a candidate");
  await tab.context().close();
});

test("candidates are sorted, filtered and saved", async () => {
  const tab = await open("#/runs/search");
  await rows(tab).first().waitFor();
  const { arms: [{ rows: all }] } = await asked("runs/search/candidates");
  const values = all.map(({ values: own }) => own[0]).sort((a, b) => a - b);
  await tab.getByText(`${all.length} candidates of ${all.length}, the best by f first`).waitFor();
  assert.match((await cells(tab, 0))[0], /^\d ★$/);
  const least = Number(read((await cells(tab, 0))[1]));
  assert.ok(Math.abs(least - values[0]) <= 1e-4 * values[0], `${least} is not ${values[0]}`);
  // Twice: the greatest first.
  const sort = tab.getByRole("region", { name: "Table of candidates" }).getByRole("button", { name: /^f( [↑↓])?$/ });
  await sort.click();
  await sort.click();
  const shown = await rows(tab).evaluateAll((all) => all.map((row) => row.cells[1].textContent));
  assert.deepEqual(shown.map(read), shown.map(read).sort((a, b) => b - a));
  assert.ok(read(shown[0]) > least);
  const limit = values[Math.floor(values.length / 2)];
  const fit = values.filter((value) => value < limit).length;
  await tab.getByLabel("Only", { exact: true }).fill(`f < ${limit}, replica >= 0`);
  await tab.getByText(`${fit} candidates of ${all.length}`).waitFor();
  await tab.getByLabel("Only", { exact: true }).fill("speed < 3");
  await tab.getByText("The filter is not used: there is no column speed.").waitFor();
  await tab.getByLabel("Only", { exact: true }).fill("");
  await tab.getByLabel("the best of each replica").check();
  await tab.getByText(`3 candidates of ${all.length}`).waitFor();
  assert.equal(await rows(tab).count(), 3);
  const button = tab.getByRole("button", { name: "Save as CSV: the candidates that are shown" });
  const [download] = await Promise.all([tab.waitForEvent("download"), button.press("Enter")]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  assert.deepEqual([lines.length, lines[0].split(",").slice(0, 3)], [4, ["replica", "f", "x[0]"]]);
  await tab.getByLabel("Arm", { exact: true }).selectOption("random");
  await tab.getByText(/^3 candidates of /).waitFor();
  await tab.context().close();
});

test("parallel coordinates show a candidate's numbers, and the genes that matter come first", async () => {
  const tab = await open("#/runs/front");
  const picture = tab.getByRole("img", { name: /^Parallel coordinates of \d+ candidates over f1, f2, x\[0\]/ });
  await picture.waitFor();
  await picture.hover({ position: { x: 200, y: 120 } });
  await tab.getByText(/^Replica \d: f1 [\d.e−]+, f2 [\d.]+, x\[0\] [\d.e−]+/).waitFor();
  assert.match(await tab.locator(".thread.chosen").getAttribute("d"), /^M[\d.]+ [\d.]+L/);
  // f1 of ZDT1 is its first gene, so their correlation is 1.
  const matter = tab.getByRole("region", { name: "Which genes matter" });
  assert.match(await matter.locator("tbody tr").first().textContent(), /^x\[0\]1/);
  await tab.getByLabel("Objective").selectOption("f2");
  await tab.getByRole("img", { name: /over f2, f1, x\[0\]/ }).waitFor();
  assert.match(await matter.locator("tbody tr").first().textContent(), /^x\[0\]−1/);
  await tab.context().close();
});

test("a logarithmic axis has medians with quartiles, a linear one means", async () => {
  const tab = await open("#/runs/fast");
  await tab.getByText("Line: median over replicas; band: quartiles; of 10 replicas.").waitFor();
  assert.equal(await tab.getByLabel("logarithmic").isChecked(), true);
  const last = async (middle) => {
    const { arms: [arm] } = await asked(`runs/fast/curves?column=1&middle=${middle}`);
    return arm[middle].at(-1);
  };
  const { replicas } = await asked("runs/fast/replicas");
  const ends = replicas.filter(({ arm }) => arm === 0).map((one) => one.last[1]).sort((a, b) => a - b);
  const near = (one, other) => assert.ok(Math.abs(one - other) <= 1e-5 * Math.abs(other), `${one}, not ${other}`);
  near(await last("median"), ends[2]);
  near(await last("mean"), ends.reduce((sum, one) => sum + one, 0) / 5);
  await tab.getByLabel("logarithmic").uncheck();
  await tab.getByText("Line: mean over replicas; band: 10th to 90th percentile").waitFor();
  assert.equal((await fetch(`http://${cluster.address}/api/runs/fast/curves?column=1&middle=mode`)).status, 400);
  await tab.context().close();
});

test("a run has a note, which the list shows and finds", async () => {
  const tab = await open("#/runs/front");
  await tab.getByRole("button", { name: "Note…" }).click();
  await tab.getByLabel("Note", { exact: true }).fill("für den Vortrag & 50 % <b>");
  await accessible(tab, "a note");
  await tab.keyboard.press("Enter");
  await tab.locator(".note p").getByText("für den Vortrag & 50 % <b>").waitFor();
  const run = await cluster.run("front");
  assert.deepEqual([run.terms.note, run.state], ["für den Vortrag & 50 % <b>", "finished"]);
  await tab.goto(`${cluster.origin}/#/`);
  await tab.locator(".tag").getByText("für den Vortrag").waitFor();
  await tab.getByLabel("Filter").fill("vortrag");
  await tab.getByText("1 run of 4").waitFor();
  // A note from the command line, and none at all.
  await cluster.evoxo("submit", file("front.toml", FRONT), "--term", "note=");
  await tab.getByText("0 runs of 4").waitFor();
  const long = await fetch(`${cluster.origin}/api/runs/front/note?text=${"x".repeat(65)}`,
    { method: "POST", headers: { origin: cluster.origin } });
  assert.deepEqual([long.status, /at most 64 bytes/.test((await long.json()).error)], [400, true]);
  await tab.context().close();
});

test("a run is deleted only after a question, and not while it is computed", async () => {
  await cluster.evoxo("submit", file("spare.toml", SEARCH));
  await until("it ends", async () => (await cluster.run("spare")).state === "finished");
  const tab = await open("#/runs/spare");
  await tab.getByRole("button", { name: "Delete…" }).click();
  const dialog = tab.getByRole("dialog", { name: "Delete spare?" });
  await dialog.getByText("All its results are removed").waitFor();
  await accessible(tab, "a deletion");
  await dialog.getByRole("button", { name: "Keep it" }).click();
  assert.equal((await cluster.run("spare")).state, "finished");
  await tab.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete the run" }).click();
  await tab.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  await until("it is gone", async () => !(await cluster.run("spare")));
  await tab.getByRole("link", { name: "spare", exact: true }).waitFor({ state: "detached" });
  await cluster.evoxo("submit", file("endless.toml", SEARCH.replace("3000", "100000000")));
  await tab.goto(`${cluster.origin}/#/runs/endless`);
  await tab.getByRole("button", { name: "Cancel…" }).waitFor();
  assert.equal(await tab.getByRole("button", { name: "Delete…" }).isVisible(), false);
  // A page that still reads a deleted run is told so, which browsers report as an error.
  await tab.context().close();
  await cluster.evoxo("cancel", "endless", "--delete");
});

test("MENACE's box of the position is shown with its beads, turned as the board is", async () => {
  const boxes = boxesOf(await asked("runs/boxes/champion?arm=0&replica=0&parts=400"));
  assert.ok(boxes.size > 290 && boxes.size <= 304, `${boxes.size} boxes`);
  // Games whose positions are turned and mirrored, and some that are their own images.
  for (const moves of ["", "a1.b2", "c3.b2", "b2.a1", "b2.c1", "a2.c2", "c1.a3.b2.c3", "a1.b1.c1.b2"]) {
    const position = await asked(`play/position?game=tic-tac-toe&moves=${moves}`);
    const { thoughts } = await asked(`play/thoughts?game=tic-tac-toe&moves=${moves}&player=boxes/0/0`);
    const box = boxOf(boxes, position.board);
    const total = box.beads.reduce((sum, one) => sum + one, 0);
    const shares = thoughts.map(({ cell, value }) => Math.abs(box.beads[cell] / total - value));
    assert.ok(Math.max(...shares) < 1e-9, `${moves}: ${JSON.stringify([box, thoughts])}`);
  }
  const tab = await open("#/play/tic-tac-toe?x=boxes/0/0&o=you&m=a1.b2");
  const box = tab.getByRole("img", { name: /^The box of / });
  await tab.getByText(/^The box from which X drew /).waitFor();
  assert.match(await box.getAttribute("aria-label"), /^The box of \.\.\.\/\.O\.\/X\.\.: /);
  await tab.getByRole("button", { name: "Earlier" }).click();
  await tab.getByText(/^The box of this position/).waitFor();
  await tab.getByText(/^All \d+ boxes with beads$/).click();
  await tab.locator(".matchbox").nth(boxes.size - 1).waitFor();
  assert.equal(await tab.locator(".matchbox").count(), boxes.size);
  assert.equal(await tab.locator(".matchbox.here").count(), 1);
  await tab.locator(".matchbox").first().click();
  await tab.getByText(/^The box that you chose\. \d+ beads/).waitFor();
  assert.equal(await box.getAttribute("aria-label").then((label) => label.startsWith("The box of .../.../...: ")), true);
  await accessible(tab, "matchboxes");
  await tab.context().close();
});

test("searches and matchboxes in light, dark and on a phone", async () => {
  await allAccessible("a search", "#/runs/search", (tab) => rows(tab).first().waitFor());
  await allAccessible("matchboxes", "#/play/tic-tac-toe?x=boxes/0/0&o=you",
    (tab) => tab.getByRole("img", { name: /^The box of / }).waitFor());
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
