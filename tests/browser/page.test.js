// The page in a real browser: a whole run watched live while the coordinator is killed, keyboard, axe on every view.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { until } from "./cluster.js";
import { accessible, allAccessible, begin, blameless, cluster, end, file, open, visit } from "./tabs.js";

const RUN = `experiment = "invincible"
seed = 3
replicas = 4
[settings]
population = 200
games = 1200
generations = 500
slice = 20
[arms."loss costs 1"]
penalty = 1
[arms."loss costs 6.5"]
penalty = 6.5
[arms."exact, and with a name as long as people give"]
fitness = "exact"
`;

let page;

before(async () => {
  await begin();
  page = await open("");
});

after(end);

test("a coordinator without runs says what to do", async () => {
  await page.getByText("No runs yet").waitFor();
  await page.getByText("evoxo new invincible > first.toml").waitFor();
  await page.getByText(`evoxo submit first.toml --coordinator ${cluster.address}`).waitFor();
  await page.getByText("Start here: type the lines below.").waitFor();
  await accessible(page, "no runs");
  await allAccessible("no workers", "#/workers", (tab) => tab.getByText("No workers are connected").waitFor());
});

test("a run without workers has a banner", async () => {
  await cluster.evoxo("submit", file("live.toml", RUN));
  await page.getByRole("link", { name: "live" }).waitFor();
  await page.getByText("No worker computes live").waitFor();
  await accessible(page, "starving");
});

test("a run is watched live, and continues after kill -9 of the coordinator", async (context) => {
  await page.getByRole("link", { name: "live" }).click();
  await page.getByRole("heading", { level: 1, name: "live" }).waitFor();
  await page.getByText("No worker computes this run").waitFor();
  const desk = cluster.worker("desk");
  await page.getByText("No worker computes this run").waitFor({ state: "hidden" });
  const done = () => page.locator(".tiles dd").first().textContent();
  const rounds = async () => Number.parseInt((await done()).replace(",", ""), 10);
  // Stop at half of the rounds: without a worker the run cannot end before the coordinator is killed, even on a fast machine.
  await until("rounds continue", async () => (await rounds()) > 150);
  await cluster.kill(desk);
  // Curves appear while the run is computed.
  await page.locator("path.line.c0").first().waitFor({ state: "attached" });
  await page.locator(".head .badge.running").waitFor();
  await cluster.kill(cluster.leader);
  await page.getByText("connection lost, trying again").waitFor();
  await accessible(page, "lost");
  const before = await rounds();
  await cluster.coordinator();
  await page.locator(".link.live").waitFor();
  const worker = cluster.worker("desk");
  context.after(() => cluster.kill(worker));
  await until("rounds continue", async () => (await rounds()) > before);
  await page.locator(".head .badge.finished").waitFor({ timeout: 120_000 });
  // The page was never reloaded, and shows the same end as the client.
  const run = await cluster.run("live");
  await page.getByText(run.digest).waitFor();
  assert.equal(run.state, "finished");
});

test("curves answer to the keyboard, and arms can be hidden", async () => {
  await page.getByText("percentile; of 12 replicas").waitFor();
  const chart = page.getByRole("slider", { name: /by generation/ });
  await chart.focus();
  await chart.press("Home");
  assert.match(await chart.getAttribute("aria-valuetext"), /^generation 1: .*loss costs 1 [−\d]/);
  await chart.press("ArrowRight");
  assert.match(await chart.getAttribute("aria-valuetext"), /^generation 2: /);
  await page.locator(".tip").getByText("generation 2").waitFor();
  await chart.press("Escape");
  await page.locator(".tip").waitFor({ state: "hidden" });
  const exact = page.getByRole("button", { name: /^exact/ });
  await exact.focus();
  await exact.press("Space");
  assert.equal(await exact.getAttribute("aria-pressed"), "false");
  assert.equal(await page.locator("path.line.c2").count(), 0);
  await exact.press("Space");
  await page.locator("path.line.c2").first().waitFor();
  await page.getByLabel("Show", { exact: true }).selectOption("mean");
  await page.getByRole("slider", { name: /^mean by generation/ }).waitFor();
  await page.getByText("The figures as a table").click();
  await page.getByRole("region", { name: "Figures of the curves" }).getByRole("row").nth(5).waitFor();
  const save = page.getByRole("button", { name: /^Save as CSV: the curves/ });
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  assert.equal(download.suggestedFilename(), "live-mean.csv");
  await page.getByText("Replicas and their newest rows").click();
  await page.getByRole("region", { name: "Replicas" }).getByRole("row").nth(12).waitFor();
  await page.getByText("Settings", { exact: true }).click();
  await page.getByText("The experiment file with every setting").click();
  await accessible(page, "a run with everything open");
});

test("the list of runs has a small curve of each arm", async () => {
  const tab = await open("");
  const curve = tab.locator(".runs .spark path.c0").first();
  await until("the curve is drawn", async () => /^M[\d.]+ [\d.]+L/.test(await curve.getAttribute("d")));
  const points = (await curve.getAttribute("d")).split("L").length;
  assert.ok(points > 20 && points <= 30, `${points} points`);
  const drawn = await tab.locator(".runs .spark path").evaluateAll((all) => all.map((one) => one.getAttribute("d")));
  assert.equal(drawn.filter(Boolean).length, 3);
  await tab.context().close();
});

test("a finished run has its verdict, its times and no bar in the list, and above its curves", async () => {
  const tab = await open("");
  const row = tab.locator(".runs tbody tr").first();
  await row.getByText(/ never loses in /).waitFor();
  await row.getByText("finished").waitFor();
  assert.equal(await row.locator("progress").isVisible(), false);
  const times = async () => (await row.locator(".when, .took").allTextContents()).join(" ");
  await until("the times are known", async () => /^\d\d:\d\d \d+ (s|min)$/.test(await times()));
  for (const width of [1280, 360]) {
    await tab.setViewportSize({ width, height: 740 });
    await tab.goto(`${cluster.origin}/#/runs/live`);
    const top = async (part) => (await part.boundingBox()).y;
    await tab.locator(".verdict").getByText(/ never loses in /).waitFor();
    for (const part of [tab.locator(".head .badge.finished"), tab.getByRole("link", { name: "Play", exact: true }).last(),
      tab.getByRole("button", { name: "Report", exact: true }), tab.locator(".verdict .conclusion")]) {
      assert.ok(await top(part) < 400, `${await part.textContent()} is at ${await top(part)} with ${width}`);
    }
    assert.ok(await top(tab.locator(".picture").first()) > await top(tab.locator(".verdict")));
  }
  await tab.getByRole("button", { name: "Report", exact: true }).press("Enter");
  assert.equal(await tab.evaluate(() => document.activeElement.id), "results");
  // The champion is that of the best replica, as the report says.
  const { best } = await (await fetch(`${cluster.origin}/api/runs/live/report`)).json();
  assert.equal(best.replicas.length, 3);
  const play = tab.getByRole("link", { name: "Play", exact: true }).last();
  assert.equal(await play.getAttribute("href"), `#/play?o=live/${best.arm}/${best.replicas[best.arm]}`);
  await tab.context().close();
});

test("the tour points at a run, and closing it is for good", async () => {
  const tab = await open("");
  await tab.getByText("Start here: open live.").waitFor();
  assert.equal(await tab.locator(".pointed").textContent(), "live");
  await accessible(tab, "the tour");
  await tab.getByRole("button", { name: "Close the tour" }).press("Enter");
  await tab.getByRole("link", { name: "live" }).waitFor();
  assert.equal(await tab.locator(".tour").isVisible(), false);
  await tab.reload();
  await tab.getByRole("link", { name: "live" }).waitFor();
  assert.deepEqual([await tab.locator(".tour").isVisible(), await tab.locator(".pointed").count()], [false, 0]);
  await tab.context().close();
});

/** A run as the coordinator describes it. */
const described = (number) => ({
  name: `study-${String(number).padStart(3, "0")}`, experiment: number % 3 ? "invincible" : "league",
  state: ["finished", "running", "failed", "paused"][number % 40] ?? "finished",
  message: number % 40 === 2 ? "task 17 of replica 3 failed on three workers" : "", config_hash: "aa", digest: "bb",
  replicas_total: 20, replicas_finished: 20, rounds_done: 500, rounds_total: 1000, tasks_done: 1, tasks_assigned: 0,
  tasks_waiting: 0, workers: 3, slots: 12, verification: "trust", submitter: `10.0.0.${number % 5}`, terms: {},
  notices: [], doubts: [], primary: null, rate: 3, left_s: 166, began: 1_700_000_000 + 5000 * number,
  ended: 1_700_000_000 + 5000 * number + 61 * number,
  arms: ["loss costs 1", "exact"].map((name, arm) => ({ name, replicas_total: 10, replicas_finished: 10,
    rounds_done: 1, rounds_total: 1, primary_metric: "worth", value: arm + number / 1000 })),
});

test("three hundred runs stay legible, are sorted and searched", async () => {
  for (const width of [1280, 360]) {
    const tab = await visit("#/elsewhere", { viewport: { width, height: 900 } });
    const all = Array.from({ length: 300 }, (_, index) => described(index + 1));
    const message = { whole: true, number: 1, build: "", at: 1_710_000_000, runs: all, workers: [], news: [],
      gone_runs: [], gone_workers: [] };
    await tab.context().route("**/api/events", (route) =>
      route.fulfill({ contentType: "text/event-stream", body: `data: ${JSON.stringify(message)}\n\n` }));
    await tab.context().route("**/api/runs/*/conclusion", (route) =>
      route.fulfill({ contentType: "application/json", body: '{"conclusion":"X never loses in 3 of 4 replicas."}' }));
    await tab.goto(`${cluster.origin}/?#/`);
    const names = () => tab.locator(".runs tbody th a").allTextContents();
    await until("all are listed", async () => (await names()).length === 300);
    const heights = await tab.locator(".runs tbody tr").evaluateAll((rows) => rows.map((row) => row.offsetHeight));
    assert.ok(Math.max(...heights) <= (width > 1000 ? 64 : 90), `the highest row has ${Math.max(...heights)} pixels`);
    // Unfinished runs come first; a verdict is requested only for visible runs.
    const first = tab.locator(".runs tbody tr").first();
    assert.match(await first.textContent(), /running|paused|failed/);
    await tab.getByLabel("Filter").fill("failed on three");
    await until("the failed ones are found", async () => (await names()).length === 8);
    await tab.getByLabel("Filter").fill("LEAGUE 10.0.0.3 finished");
    await tab.getByText(/^\d+ runs of 300$/).waitFor();
    assert.ok((await names()).length > 5 && (await names()).length < 40);
    await tab.getByText("X never loses in 3 of 4 replicas.").first().waitFor();
    await tab.getByLabel("Filter").fill("nothing like it");
    await tab.getByText("No run has all of these words").waitFor();
    await tab.getByLabel("Filter").fill("");
    await tab.getByRole("button", { name: "Run", exact: true }).press("Enter");
    assert.equal((await names())[0], "study-001");
    if (width > 1000) {
      await tab.getByRole("button", { name: "Took" }).press("Enter");
      assert.equal((await names())[0], "study-300");
    }
    await accessible(tab, `300 runs, ${width}`);
    await tab.context().close();
  }
});

test("every view in light, dark and on a phone", async () => {
  await allAccessible("runs", "", (tab) => tab.getByRole("link", { name: "live" }).waitFor());
  await allAccessible("a run", "#/runs/live", (tab) => tab.locator("path.line.c0").first().waitFor());
  await allAccessible("a champion", "#/runs/live/champions/2/0", (tab) => tab.getByText("A table that").waitFor());
  await allAccessible("no such run", "#/runs/none", (tab) => tab.getByText("There is no run none").waitFor());
  for (const [what, hash] of [["nothing", "#/elsewhere"], ["a broken address", "#/runs/%"]]) {
    await allAccessible(what, hash, (tab) => tab.getByText("There is nothing here").waitFor());
  }
});

test("a run is paused, resumed and cancelled by keyboard", async () => {
  const long = RUN.replace("generations = 500", "generations = 100000");
  await cluster.evoxo("submit", file("long.toml", long));
  const tab = await open("#/runs/long");
  const badge = (state) => tab.locator(`.head .badge.${state}`).waitFor();
  await tab.getByRole("button", { name: "Pause" }).press("Enter");
  await badge("paused");
  assert.equal((await cluster.run("long")).state, "paused");
  await tab.getByRole("button", { name: "Resume" }).press("Enter");
  await badge("running");
  await tab.getByRole("button", { name: "Cancel…" }).press("Enter");
  await tab.getByRole("dialog").waitFor();
  await accessible(tab, "the dialog");
  await tab.keyboard.press("Escape");
  assert.equal((await cluster.run("long")).state, "running");
  await tab.getByRole("button", { name: "Cancel…" }).press("Enter");
  await tab.getByRole("button", { name: "Cancel the run" }).press("Enter");
  await badge("cancelled");
  await tab.context().close();
});

test("eight tabs of one browser share one stream, even after the tab that holds it is closed", async () => {
  const first = await open("");
  const tabs = [first];
  const streams = new Set();
  const note = (tab) => {
    tab.setDefaultTimeout(60_000);
    tab.on("request", (request) => request.url().endsWith("/api/events") && streams.add(request));
    for (const end of ["requestfinished", "requestfailed"]) tab.on(end, (request) => streams.delete(request));
  };
  for (let count = 1; count < 8; count += 1) {
    const tab = await first.context().newPage();
    note(tab);
    await tab.goto(`${cluster.origin}/#/runs/live`);
    tabs.push(tab);
  }
  // A browser opens six connections to a host: requests of further tabs would wait forever.
  for (const tab of tabs) await tab.locator(".link.live").waitFor();
  await tabs[7].locator("path.line.c0").first().waitFor({ state: "attached" });
  assert.equal(streams.size, 0, "the first tab had the stream");
  await first.close();
  await until("another tab has the stream", () => streams.size === 1);
  await cluster.evoxo("submit", file("shared.toml", RUN.replace("generations = 500", "generations = 5")));
  for (const tab of tabs.slice(1)) {
    await tab.goto(`${cluster.origin}/#/`);
    await tab.getByRole("link", { name: "shared" }).waitFor();
  }
  await cluster.evoxo("cancel", "shared");
  for (const tab of tabs.slice(1)) {
    await tab.locator(".runs tr", { hasText: "shared" }).locator(".badge.cancelled").waitFor();
  }
  assert.equal(streams.size, 1);
  await tabs[1].context().close();
});

test("workers are listed, sorted and filtered, and a lost one is news", async () => {
  await cluster.evoxo("submit", file("again.toml", RUN.replace("generations = 500", "generations = 100000")));
  const [first] = [cluster.worker("ant"), cluster.worker("bumble"), cluster.worker("cow")];
  const tab = await open("#/workers");
  const names = () => tab.locator("tbody th").allTextContents();
  await until("there are three workers", async () => (await names()).length === 3);
  assert.deepEqual(await names(), ["ant", "bumble", "cow"]);
  const sort = tab.getByRole("button", { name: "Name" });
  await sort.press("Enter");
  assert.deepEqual(await names(), ["cow", "bumble", "ant"]);
  assert.equal(await tab.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort"), "descending");
  await tab.getByRole("cell", { name: "again" }).first().waitFor();
  await accessible(tab, "workers");
  // The filter also searches builds, so it uses letters that no commit hash has.
  await tab.getByLabel("Filter").fill("umbl");
  await tab.getByText("1 worker of 3").waitFor();
  assert.deepEqual(await names(), ["bumble"]);
  await tab.getByLabel("Filter").fill("");
  await sort.press("Enter");
  assert.deepEqual(await names(), ["ant", "bumble", "cow"]);
  const button = tab.getByRole("button", { name: "Drain… bumble" });
  await button.focus();
  await cluster.kill(first);
  await tab.getByText(/worker ant is lost/).waitFor();
  await until("the worker is gone", async () => (await names()).length === 2);
  assert.ok(await button.evaluate((node) => node === document.activeElement), "the element below keeps the focus");
  await allAccessible("workers with news", "#/workers", (other) => other.getByText(/worker ant is lost/).waitFor());
});

test("a worker is asked to leave", async () => {
  const dog = cluster.worker("dog");
  const gone = new Promise((done) => dog.once("exit", done));
  const tab = await open("#/workers");
  await tab.getByRole("button", { name: "Drain… dog" }).press("Enter");
  await tab.getByRole("dialog", { name: "Ask dog to leave?" }).waitFor();
  await accessible(tab, "the dialog about a worker");
  await tab.keyboard.press("Escape");
  await tab.getByRole("button", { name: "Drain… dog" }).press("Enter");
  await tab.getByRole("button", { name: "Ask it to leave" }).press("Enter");
  assert.equal(await gone, 0);
  await tab.getByRole("rowheader", { name: "dog" }).waitFor({ state: "detached" });
  await tab.context().close();
  await cluster.evoxo("cancel", "again"); // leaves the processor to the browser
});

/** A worker as the coordinator describes it. */
const told = (number) => ({
  session: number, name: `node-${String(number).padStart(3, "0")}`, host: `rack${number % 12}.cluster.example`,
  address: `10.0.${number >> 8}.${number & 255}`, identity: number.toString(16).padStart(12, "0"),
  build: "0.1.0 (0123456789ab)", slots: 64, slots_busy: 64, tasks_assigned: 128, tasks_done: 1_234_567 + number,
  silent_s: number % 50 === 0 ? 7 : 0, since: 1000, rate: 123.4 + number, draining: number % 100 === 7, kinds: [],
  kinds_refused: [], programs: [], runs: ["a-run-with-a-longer-name", "another"].slice(number % 2), tasks_last_minute: 9,
  ends: { done: 1_234_567 + number, late: 12, failed: 0, timed_out: number % 9 ? 0 : 3, lost: number % 50 ? 0 : 1, refused: 0 },
});

test("three hundred workers stay legible", async () => {
  for (const width of [1280, 1600, 360]) {
    const tab = await visit("#/elsewhere", { viewport: { width, height: 900 } });
    const workers = Array.from({ length: 300 }, (_, index) => told(index + 1));
    const message = { whole: true, number: 1, build: "", at: 2000, runs: [], workers, news: [], gone_runs: [],
      gone_workers: [] };
    await tab.context().route("**/api/events", (route) =>
      route.fulfill({ contentType: "text/event-stream", body: `data: ${JSON.stringify(message)}\n\n` }));
    await tab.goto(`${cluster.origin}/?#/workers`);
    await tab.getByRole("rowheader", { name: "node-300" }).waitFor();
    await tab.getByText("All have the build 0.1.0 (0123456789ab).").waitFor();
    const table = tab.getByRole("region", { name: "Workers" });
    const cut = await table.evaluate((node) => [...node.querySelectorAll("th, td")].filter((cell) =>
      cell.offsetParent && cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent));
    assert.deepEqual(cut, [], `nothing is cut at ${width}`);
    const rows = await table.locator("tbody tr").evaluateAll((all) => all.map((row) =>
      ({ height: row.offsetHeight, text: [...row.cells].map((cell) => `${cell.innerText} (${cell.offsetWidth})`).join(" | ") })));
    const highest = rows.reduce((one, other) => (other.height > one.height ? other : one));
    if (width > 1000) {
      assert.ok(highest.height <= 64, `the highest row has ${highest.height} pixels: ${highest.text}`);
      assert.ok(await table.evaluate((node) => node.scrollWidth <= node.clientWidth), `the table fits ${width} pixels`);
    }
    assert.equal(await table.getByRole("columnheader", { name: "Identity" }).isVisible(), width > 1000);
    await tab.getByLabel("Filter").fill("rack7 another");
    // One of the 25 of this rack is leaving.
    await tab.getByText("24 workers of 300").waitFor();
    await accessible(tab, `300 workers, ${width}`);
    await tab.context().close();
  }
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
