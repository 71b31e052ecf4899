// The pictures in docs/page.md: screenshots of real runs. If EVOXO_PICTURES is set, they are written into that directory.
// Each is small enough for a repository.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { until } from "./cluster.js";
import { withPalette } from "./png.js";
import { accessible, begin, blameless, cluster, end, file, open } from "./tabs.js";

const BYTES_MAX = 100_000;
const TABLES = `experiment = "invincible"
seed = 3
replicas = 4
[settings]
population = 200
games = 400
generations = 60
slice = 20
[arms."loss costs 1"]
penalty = 1
[arms."loss costs 6.5"]
penalty = 6.5
[arms."exact fitness"]
fitness = "exact"
`;
const WIDE = TABLES.replace("seed = 3", "seed = 4").replace("population = 200", "population = 400");
const NETWORKS = `experiment = "td3d"
replicas = 1
[settings]
games = 4000
test_every = 1000
test_games = 100
[arms."on lines"]
network = "small-structured"
shared = "yes"
wins = "exact"
`;
const LEAGUE = `experiment = "league"
replicas = 1
[settings]
game = "score-four"
pairs = 30
pairs_a_round = 2
[[players]]
who = "random"
[[players]]
who = "filtered"
[[players]]
who = "benchmark"
[[players]]
who = "alpha-beta:2"
`;

const SEARCH = `experiment = "evolve"
replicas = 5
[settings]
problem = "rosenbrock"
length = 8
evaluations = 4000
[arms."CMA-ES"]
algorithm = "cma-es"
[arms."genetic algorithm"]
algorithm = "ga"
`;
const FRONTS = `experiment = "evolve"
replicas = 5
[settings]
problem = "zdt1"
algorithm = "nsga2"
evaluations = 4000
`;
const RUNS = Object.entries({ tables: TABLES, wide: WIDE, networks: NETWORKS, league: LEAGUE, search: SEARCH,
  fronts: FRONTS });

before(async () => {
  await begin();
  cluster.worker("ant");
  cluster.worker("bee");
  for (const [name, text] of RUNS) await cluster.evoxo("submit", file(`${name}.toml`, text));
  const over = async (name) => (await cluster.run(name)).state === "finished";
  for (const [name] of RUNS) await until(`${name} ends`, () => over(name));
});

after(end);

/** Takes a screenshot, and checks its size. */
async function taken(name, hash, ready, height) {
  const tab = await open(hash, { viewport: { width: 1100, height }, colorScheme: "light", reducedMotion: "reduce" });
  await ready(tab);
  await accessible(tab, name);
  const bytes = withPalette(await tab.screenshot({ animations: "disabled", caret: "hide" }));
  assert.ok(bytes.length > 10_000 && bytes.length < BYTES_MAX, `${name} has ${bytes.length} bytes`);
  const directory = process.env.EVOXO_PICTURES;
  if (directory) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `page-${name}.png`), bytes);
  }
  await tab.context().close();
}

test("all runs", () => taken("runs", "#/", async (tab) => {
  await tab.getByRole("button", { name: "Close the tour" }).click();
  await tab.locator(".runs tbody tr").nth(RUNS.length - 1).waitFor();
  const verdicts = tab.locator(".runs td.result");
  await until("the verdicts are here", async () => (await verdicts.allTextContents()).every((text) => text.length > 20));
}, 620));

test("the candidates of a search", () => taken("search", "#/runs/search", async (tab) => {
  await tab.getByRole("region", { name: "Candidates" }).getByLabel("Arm").selectOption("genetic algorithm");
  await tab.getByRole("heading", { name: "Candidates" }).evaluate((node) => node.scrollIntoView({ block: "start" }));
  await tab.evaluate(() => scrollBy(0, -80));
  await tab.getByRole("heading", { name: "Which genes matter" }).waitFor();
}, 720));

test("the fronts of a search with two objectives", () => taken("fronts", "#/runs/fronts", async (tab) => {
  await tab.locator(".drawn").first().evaluate((node) => node.scrollIntoView({ block: "end" }));
}, 760));

test("a board for the wall", () => taken("wall", "#/wall/tic-tac-toe", async (tab) => {
  await tab.locator(".opponents button").nth(1).waitFor();
  await tab.locator(".layers").getByRole("button", { name: "a1" }).click();
  await tab.locator(".status").getByText("Your move, X.").waitFor();
}, 640));

test("a run", () => taken("run", "#/runs/tables", async (tab) => {
  await tab.locator("path.line.c2").first().waitFor();
  await tab.getByText("percentile; of 12 replicas").waitFor();
}, 860));

test("a game of 4x4x4 with a network's thoughts", () => taken("play",
  "#/play/score-four?x=you&o=networks/0/0&m=a1.b2.b1.c1.b3.c3", async (tab) => {
    await tab.locator(".status").getByText("Your move, X.").waitFor();
    await tab.getByLabel("from").selectOption("networks/0/0");
    await tab.getByText(/it values this at/).nth(8).waitFor();
  }, 980));

test("a network's weights", () => taken("network", "#/runs/networks/champions/0/0", async (tab) => {
  await tab.getByRole("img", { name: "Weights on the board's lines" }).waitFor();
  await tab.locator(".drawn").first().evaluate((node) => node.scrollIntoView({ block: "start" }));
  await tab.evaluate(() => scrollBy(0, -80));
}, 760));

test("two runs", () => taken("compare", "#/runs/tables/with/wide", async (tab) => {
  await tab.getByText("percentile; of 24 replicas").waitFor();
  await tab.getByRole("region", { name: "Tests of both runs" }).waitFor();
}, 1210));

test("a league", () => taken("league", "#/runs/league", async (tab) => {
  await tab.getByRole("table").filter({ hasText: "95 % interval" }).first().waitFor();
  await tab.getByText("The same as evoxo report prints.").waitFor();
  await tab.locator(".ratings").waitFor();
}, 760));

test("workers", async () => {
  await cluster.evoxo("submit", file("long.toml", TABLES.replace("generations = 60", "generations = 100000")));
  await taken("workers", "#/workers", async (tab) => {
    await tab.getByRole("cell", { name: "long" }).first().waitFor();
    await tab.getByRole("rowheader", { name: "bee" }).waitFor();
  }, 420);
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
