// The page of a coordinator with an access directory, in a real browser: logging in and out, and what each role sees.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible, begin, blameless, cluster, end, file, visit } from "./tabs.js";

const RUN = `experiment = "invincible"
[settings]
generations = 100000
`;

const token = async (role) => (await cluster.evoxo("token", "create", "--role", role)).match(/^evoxo1\.\S+/m)[0];
const live = (tab) => tab.locator(".link.live").waitFor();
const pause = (tab) => tab.getByRole("button", { name: "Pause" });

before(async () => {
  await cluster.secure();
  await begin();
  await cluster.evoxo("submit", file("run.toml", RUN));
});

after(end);

test("a viewer pastes a token, sees a run and no buttons, and logs out", async () => {
  for (const [width, colorScheme] of [[1280, "light"], [360, "dark"]]) {
    const tab = await visit("#/runs/run", { viewport: { width, height: 800 }, colorScheme });
    await tab.getByRole("heading", { name: "Log in" }).waitFor();
    await accessible(tab, "the login");
    await tab.getByLabel("Token").fill("evoxo1.nothing");
    await tab.keyboard.press("Enter");
    await tab.getByText("You are not logged in: it is not a token").waitFor();
    await accessible(tab, "a refused login");
    await tab.getByLabel("Token").fill(await token("viewer"));
    await tab.keyboard.press("Enter");
    await live(tab);
    // The requested view.
    await tab.getByRole("heading", { level: 1, name: "run" }).waitFor();
    await tab.getByText(/^viewer [0-9a-f]{12}$/).waitFor();
    assert.equal(await pause(tab).count(), 0);
    await tab.getByText("evoxo-worker --coordinator HOST:PORT --join TOKEN").waitFor();
    await accessible(tab, "a viewer's page");
    const scripts = await tab.evaluate(() => document.cookie);
    assert.equal(scripts, "", "no script sees the cookie");
    await tab.reload();
    await live(tab);
    await tab.getByRole("button", { name: "Log out" }).press("Enter");
    await tab.getByRole("heading", { name: "Log in" }).waitFor();
    await tab.context().close();
  }
});

test("an operator's link logs in and the token leaves the address; a revoked operator is logged out at once", async () => {
  const tab = await visit(`#token=${await token("operator")}`);
  await live(tab);
  assert.equal(tab.url(), `${cluster.origin}/`);
  await tab.getByRole("link", { name: "run", exact: true }).click();
  await pause(tab).press("Enter");
  await tab.locator(".head .badge.paused").waitFor();
  assert.equal((await cluster.run("run")).state, "paused");
  const id = (await tab.locator("#who span").textContent()).split(" ")[1];
  await cluster.evoxo("access", "revoke", id);
  await tab.getByRole("heading", { name: "Log in" }).waitFor();
  await tab.context().close();
});

test("a login link works in a tab that already shows the page, and the token leaves the address", async () => {
  const tab = await visit("#/runs/run");
  await tab.getByRole("heading", { name: "Log in" }).waitFor();
  for (const role of ["viewer", "operator"]) {
    await tab.goto(`${cluster.origin}/#token=${await token(role)}`);
    await tab.getByText(new RegExp(`^${role} [0-9a-f]{12}$`)).waitFor();
    await live(tab);
    assert.equal(tab.url(), `${cluster.origin}/`);
  }
  // From then on, addresses lead to views as usual.
  await tab.goto(`${cluster.origin}/#/runs/run`);
  await pause(tab).or(tab.getByRole("button", { name: "Resume" })).waitFor();
  await tab.context().close();
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
