// Tabs of a real browser on a private cluster: their requests and errors, and axe's findings.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import AxeBuilder from "@axe-core/playwright";
import { chromium } from "playwright-core";

import { Cluster } from "./cluster.js";

export const cluster = new Cluster();
const [complaints, foreign] = [[], []];
/** With EVOXO_LATENCY, each request is delayed by up to this many milliseconds, so tests that need quick answers fail. */
const LATENCY_MS = Number(process.env.EVOXO_LATENCY ?? 0);
/** With EVOXO_FILES, the page's scripts and styles come from this directory, so a change needs no build. */
const FILES = process.env.EVOXO_FILES;
let browser;

export async function begin() {
  await cluster.coordinator();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"],
  });
}

export async function end() {
  await browser?.close();
  await cluster.end();
}

/** Nothing was fetched from other hosts, and no browser reported an error. */
export function blameless() {
  assert.deepEqual(foreign, []);
  assert.deepEqual(complaints, []);
}

export function file(name, content) {
  const path = join(cluster.directory, name);
  writeFileSync(path, content);
  return path;
}

/** A tab that records its requests and errors. */
async function fresh(options) {
  const viewport = { width: 1280, height: 900 };
  // No browser knows the authority of a new cluster.
  const context = await browser.newContext({ viewport, ignoreHTTPSErrors: Boolean(cluster.access), ...options });
  const tab = await context.newPage();
  const late = (route) => setTimeout(() => route.continue(), Math.random() * LATENCY_MS);
  if (LATENCY_MS > 0) await context.route("**/api/**", late);
  if (FILES) {
    const named = (route) => new URL(route.request().url()).pathname.replace("/files/", "");
    await context.route("**/files/*", (route) => route.fulfill({ path: join(FILES, named(route)) }));
  }
  tab.setDefaultTimeout(60_000);
  tab.on("pageerror", (error) => complaints.push(error.message));
  tab.on("console", (said) => {
    // The page itself reports that the coordinator is gone or rejects a request.
    if (said.type() === "error" && !/ERR_|status of (400|401|403|429|503)/.test(said.text())) {
      complaints.push(`${said.text()}: ${said.location().url}`);
    }
  });
  tab.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (!["blob:", "file:"].includes(protocol) && host !== new URL(cluster.origin).host) foreign.push(request.url());
  });
  return tab;
}

/** A tab with a local file. */
export async function local(path, options = {}) {
  const tab = await fresh(options);
  await tab.goto(`file://${path}`);
  return tab;
}

/** A view, which may be the login. */
export async function visit(hash, options = {}) {
  const tab = await fresh(options);
  await tab.goto(`${cluster.origin}/${hash}`);
  return tab;
}

export async function open(hash, options = {}) {
  const tab = await visit(hash, options);
  await tab.locator(".link.live").waitFor();
  return tab;
}

/** Fails if axe finds anything. */
export async function accessible(tab, what) {
  const { violations } = await new AxeBuilder({ page: tab }).analyze();
  const found = violations.map(({ id, nodes }) => `${what}: ${id}: ${nodes.map((node) => node.html).join("\n")}`);
  assert.deepEqual(found, []);
}

/** The colour schemes and sizes in which each view is tested; with EVOXO_LIGHT only the first. */
const LOOKS = [[1280, "light"], [1280, "dark"], [360, "light"]].slice(0, process.env.EVOXO_LIGHT ? 1 : 3);

/** Fails if the page is wider than the window. */
async function fits(tab, what) {
  const [inner, scroll] = await tab.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  assert.ok(scroll <= inner, `${what} is ${scroll} pixels wide, the window ${inner}`);
}

/** Tests each view in light and dark, wide and narrow, and whether it fits the smallest phone. */
export async function allAccessible(what, hash, ready) {
  for (const [width, colorScheme] of LOOKS) {
    const tab = await open(hash, { viewport: { width, height: 800 }, colorScheme });
    await ready(tab);
    await accessible(tab, `${what}, ${width}, ${colorScheme}`);
    await fits(tab, what);
    await tab.setViewportSize({ width: 320, height: 800 });
    await fits(tab, what);
    await tab.context().close();
  }
}
