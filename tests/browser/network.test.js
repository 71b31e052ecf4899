// Networks in a report as one file: pictures of their weights, and the file's own moves compared with evoxo's.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";

import AxeBuilder from "@axe-core/playwright";

import { until } from "./cluster.js";
import { allAccessible, begin, blameless, cluster, end, file, local, open } from "./tabs.js";

const PROGRAMS = process.env.EVOXO_PROGRAMS ?? "target/release";
const RUN = `experiment = "td3d"
replicas = 1
[settings]
games = 200
test_every = 200
test_games = 5
[arms.lines]
network = "deep-structured"
[arms.shared]
network = "small-structured"
shared = "yes"
wins = "exact"
[arms.tables]
network = "linear-tuples"
shared = "yes"
wins = "exact"
[arms.dense]
network = "deep"
[arms.filters]
network = "tuples"
`;
const PLAYED = ["lines", "shared", "tables", "dense"];
/** The number of random games, and the greatest difference from a value in single precision. */
const GAMES = 6;
const NEAR = 2e-5;

let tab;

function evoxo(...words) {
  const done = spawnSync(join(PROGRAMS, "evoxo"), words, { cwd: cluster.directory, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
}

before(async () => {
  await begin();
  cluster.worker("desk");
  await cluster.evoxo("submit", file("networks.toml", RUN));
  await until("the run ends", async () => (await cluster.run("networks")).state === "finished");
  await cluster.evoxo("fetch", "networks", "--out", join(cluster.directory, "out"));
  evoxo("report", "out", "--html", "report.html");
  tab = await local(join(cluster.directory, "report.html"));
});

after(end);

/** A pseudo-random number below a bound; the sequence is always the same. */
let seed = 1;
function below(bound) {
  seed = (seed * 48271) % 2147483647;
  return seed % bound;
}

/** The thoughts of the file's player on the position after these moves: legal moves with their values, and its choice. */
function inFile(index, moves) {
  return tab.evaluate(([index, moves]) => {
    const place = document.querySelectorAll(".game")[index];
    const rules = rulesOf(JSON.parse(place.dataset.shape));
    const player = networkPlayer(place.dataset, rules);
    let board = rules.cells.map(() => 0);
    for (const move of moves) {
      board = board.with(rules.legal(board).find((cell) => rules.moveName(cell) === move), toMove(board));
    }
    if (rules.isOver(board)) return null;
    const values = player.values(board).map(([cell, value]) => [rules.moveName(cell), value]);
    const { cell, says } = player.choose(board);
    return { values, move: rules.moveName(cell), says };
  }, [index, moves]);
}

/** The same from the coordinator, in Rust. */
async function inRust(index, moves, what) {
  const query = `game=score-four&moves=${moves.join(".")}&player=networks/${index}/0`;
  const answer = await fetch(`http://${cluster.address}/api/play/${what}?${query}`);
  const json = await answer.json();
  assert.equal(answer.status, 200, json.error);
  return json;
}

test("networks of all kinds value moves as evoxo does, and choose the same moves", async () => {
  assert.equal(await tab.locator(".game").count(), PLAYED.length);
  let [compared, forced, near] = [0, 0, 0];
  for (const [index, arm] of PLAYED.entries()) {
    for (let game = 0; game < GAMES; game += 1) {
      const moves = [];
      for (;;) {
        const own = await inFile(index, moves);
        if (!own || moves.length > 40) break;
        const { move } = await inRust(index, moves, "move");
        const where = `${arm}: ${moves.join(" ")}`;
        if (own.says.includes("line")) {
          forced += 1;
          assert.equal(own.move, move, where);
        } else {
          const { thoughts } = await inRust(index, moves, "thoughts");
          const theirs = new Map(thoughts.map((thought) => [thought.move, thought.value]));
          for (const [name, value] of own.values) {
            assert.ok(Math.abs(value - theirs.get(name)) < NEAR, `${where}: ${name} ${value} ${theirs.get(name)}`);
            compared += 1;
          }
          // A different choice must be as good up to rounding, as symmetric moves are.
          const loss = theirs.get(move) - theirs.get(own.move);
          assert.ok(own.move === move || loss < NEAR, `${where}: ${own.move} instead of ${move}`);
          near += own.move !== move;
        }
        moves.push(own.values[below(own.values.length)][0]);
      }
    }
  }
  assert.ok(compared > 2000 && forced > 3, `${compared} values, ${forced} forced moves`);
  console.log(`${compared} values, ${forced} forced moves, ${near} choices among equals`);
});

test("a game of 4x4x4 in the file by keyboard", async () => {
  const game = tab.locator(".game").nth(2);
  const status = game.getByRole("status");
  await status.getByText("Your move, X.").waitFor();
  await game.getByRole("button", { name: /^a41: empty, next/ }).focus();
  await tab.keyboard.press("ArrowRight");
  assert.match(await tab.evaluate(() => document.activeElement.getAttribute("aria-label")), /^b41: empty, next/);
  await tab.keyboard.press("PageUp");
  assert.match(await tab.evaluate(() => document.activeElement.getAttribute("aria-label")), /^b42: empty$/);
  // A stone falls to the lowest free cell of its pile.
  await tab.keyboard.press("Enter");
  await status.getByText(/^It plays [a-d][1-4], which it values at -?0\.\d{3}\. Your move, X\.$/).waitFor();
  assert.equal(await game.getByRole("button", { name: "b41: X" }).count(), 1);
  for (let move = 0; move < 40 && (await status.textContent()).includes("Your move"); move += 1) {
    await game.locator(".grid button[aria-disabled=false]").first().click();
  }
  assert.match(await status.textContent(), /You win!|You lose\.|A draw\./);
  await game.getByRole("button", { name: "Play again" }).press("Enter");
  await status.getByText(/Your move, O\.$/).waitFor();
});

test("the file says which champions cannot be played", async () => {
  const sentence = "You cannot play against this champion in this file: its filters read tables in every orientation";
  await tab.getByText(sentence).waitFor();
});

test("weights are drawn, in the file and on the page", async () => {
  for (const title of ["Weights on the board's lines: the strongest 18 of 76 lines", "Weights on the board's lines",
    "Weights of the first layer: the strongest 18 of 95 units"]) {
    const picture = tab.getByRole("img", { name: title, exact: true });
    assert.ok(await picture.locator("circle").count() > 100, title);
  }
  const ready = (one) => one.getByRole("img", { name: /^Weights on the board's lines/ }).waitFor();
  await allAccessible("a network's weights", "#/runs/networks/champions/0/0", ready);
});

test("in light and dark, wide and narrow axe finds nothing in the file", async () => {
  for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [360, "light"]]) {
    const one = await local(join(cluster.directory, "report.html"), { viewport: { width, height: 800 }, colorScheme });
    const { violations } = await new AxeBuilder({ page: one }).analyze();
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), [], `${width} ${colorScheme}`);
    const [inner, scroll] = await one.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
    assert.ok(scroll <= inner, `the page is ${scroll} pixels wide, the window ${inner}`);
    await one.context().close();
  }
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);
