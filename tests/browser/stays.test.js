// `evoxo run` in a terminal, with its page open in a real browser from the first second until after the end.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { PROGRAMS, until } from "./cluster.js";
import { begin, blameless, cluster, end, file, open } from "./tabs.js";

const TABLES = `experiment = "invincible"
[settings]
population = 1000
generations = 150
`;

/** A program in a terminal, with what it has printed. */
function terminal(command) {
  const child = spawn("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"]);
  const printed = { child, text: "", status: null };
  child.stdout.on("data", (data) => { printed.text += data; });
  child.once("close", (status) => { printed.status = status; });
  return printed;
}

/** The address of the page that a program prints. */
async function pageOf(printed) {
  const [found] = await until("the address is printed", () => /http:\/\/[\d.:]+/.exec(printed.text));
  return found;
}

before(begin);
after(end);

test("the page shows the run from the first second, and all of it works after the end", async () => {
  const out = join(cluster.directory, "out");
  const run = terminal(`${join(PROGRAMS, "evoxo")} run ${file("tables.toml", TABLES)} --out ${out}`);
  cluster.origin = await pageOf(run);
  const tab = await open("#/runs/tables");
  // Until something is stored, which slow requests may miss, the page shows what is known. Workers that are on their way are
  // no trouble.
  const known = tab.getByText(/^Curves begin with the first checkpoint\. So far: worth /);
  await known.or(tab.locator("path.line")).first().waitFor();
  assert.equal(await tab.locator(".banner:visible").count(), 0);
  await until("the run has ended", () => /digest r1:/.test(run.text));
  await tab.getByText(/^finished$/).first().waitFor();
  assert.match(await tab.locator(".link").textContent(), /live/);
  assert.equal(run.status, null);
  // The best champion plays, on a page that was open all the time.
  await tab.getByRole("link", { name: "Play", exact: true }).last().click();
  await tab.locator(".status").getByText("Your move, X.").waitFor();
  await tab.locator(".layers").getByRole("button", { name: "b2" }).click();
  await until("the champion answers", async () => (await tab.locator(".moves strong").count()) === 2);
  await tab.context().close();
  await until("the program ends", () => run.status !== null);
  assert.equal(run.status, 0, run.text);

  // Any time later.
  const viewer = terminal(`${join(PROGRAMS, "evoxo")} view ${out}`);
  cluster.origin = await pageOf(viewer);
  const later = await open("#/");
  await later.getByText(/^finished$/).first().waitFor();
  await later.context().close();
  viewer.child.kill();
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
