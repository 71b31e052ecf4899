// A report as one file in a real browser: figures by pointing and by keyboard, a champion that plays as evoxo does, axe.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import AxeBuilder from "@axe-core/playwright";
import { chromium } from "playwright-core";

const PROGRAMS = process.env.EVOXO_PROGRAMS ?? "target/release";
const RUN = `experiment = "invincible"
seed = 3
replicas = 3
[settings]
population = 50
generations = 30
fitness = "exact"
[arms."loss <b>costs</b> 1"]
penalty = 1
[arms."loss costs 6.5"]
penalty = 6.5
`;

const directory = mkdtempSync(join(tmpdir(), "evoxo-report-"));
const [complaints, fetched] = [[], []];
let browser;

function evoxo(words, input = "") {
  const done = spawnSync(join(PROGRAMS, "evoxo"), words, { cwd: directory, input, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const tab = await context.newPage();
  tab.setDefaultTimeout(60_000);
  tab.on("pageerror", (error) => complaints.push(error.message));
  tab.on("console", (said) => complaints.push(said.text()));
  tab.on("request", (request) => fetched.push(request.url()));
  await tab.goto(`file://${join(directory, "report.html")}`);
  return tab;
}

before(async () => {
  writeFileSync(join(directory, "run.toml"), RUN);
  evoxo(["run", "run.toml", "--workers", "0", "--out", "out"]);
  evoxo(["report", "out", "--html", "report.html"]);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"],
  });
});

after(async () => {
  await browser?.close();
  rmSync(directory, { recursive: true, force: true });
});

test("pointing at a picture, or its arrow keys, shows its figures", async () => {
  const tab = await open();
  const plot = tab.locator("figure[data-curves] .plot").first();
  await plot.hover();
  const tip = tab.locator(".tip").first();
  await tip.getByText(/^generation \d+$/).waitFor();
  await plot.focus();
  await plot.press("Home");
  await tip.getByText("generation 1", { exact: true }).waitFor();
  await plot.press("ArrowRight");
  await tip.getByText("generation 2", { exact: true }).waitFor();
  await plot.press("Escape");
  await tip.waitFor({ state: "hidden" });
  await tab.getByText("The figures as a table").first().click();
  await tab.locator("figure table").first().getByRole("row").nth(5).waitFor();
  await tab.context().close();
});

test("the champion in the file plays as evoxo does", async () => {
  const tab = await open();
  const game = tab.locator(".game").first();
  const typed = [];
  const answers = [];
  for (;;) {
    const said = await game.getByRole("status").textContent();
    const answer = /It plays (..)\./.exec(said);
    if (answer) answers.push(answer[1]);
    if (!said.includes("Your move")) break;
    const free = game.locator(".grid button[aria-disabled=false]").last();
    typed.push((await free.getAttribute("aria-label")).slice(0, 2));
    await free.press("Enter");
  }
  assert.ok(answers.length >= 2);
  const best = JSON.parse(evoxo(["best", "out", "--json"]))["loss <b>costs</b> 1"];
  const lines = evoxo(["play", best.card, "--json"], `${typed.join("\n")}\n`).trim().split("\n").map(JSON.parse);
  // Every second position follows a move of the champion.
  const moved = lines.map((line) => line.moved).filter((move) => move && !typed.includes(move));
  assert.deepEqual(moved, answers);
  await tab.context().close();
});

test("in light and dark, wide, narrow and on paper axe finds nothing", async () => {
  const looks = [[1280, "light"], [1280, "dark"], [360, "light"], [800, "light", "print"]];
  for (const [width, colorScheme, media] of looks) {
    const tab = await open({ viewport: { width, height: 800 }, colorScheme });
    if (media) await tab.emulateMedia({ media });
    const { violations } = await new AxeBuilder({ page: tab }).analyze();
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), [], `${width} ${colorScheme}`);
    const [inner, scroll] = await tab.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
    assert.ok(scroll <= inner, `the page is ${scroll} pixels wide, the window ${inner}`);
    await tab.context().close();
  }
});

test("nothing was fetched, and the browser reported no error", () => {
  assert.deepEqual(complaints, []);
  assert.ok(fetched.length > 0 && fetched.every((url) => url.startsWith("file://") && url.endsWith("report.html")));
});
