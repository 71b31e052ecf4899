// Playing in a real browser: a game on each board by mouse and by keyboard, also against a champion; axe on every board.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { until } from "./cluster.js";
import { hintOf, outcomeOf } from "./files/board.js";
import { judged, turningPoint } from "./files/analysis.js";
import { linesOf, threats } from "./files/threats.js";
import { accessible, allAccessible, begin, blameless, cluster, end, file, open, visit } from "./tabs.js";

const TABLES = `experiment = "invincible"
seed = 3
[settings]
population = 50
generations = 10
fitness = "exact"
[arms."plays O"]
penalty = 6.5
[arms."plays X"]
side = "X"
penalty = 6.5
`;
const NETWORKS = `experiment = "td3d"
[settings]
network = "small"
games = 40
test_every = 10
test_games = 5
`;

const status = (tab, text) => tab.locator(".status").getByText(text).waitFor();
const cell = (tab, name) => tab.locator(".layers").getByRole("button", { name });
const moves = (tab) => tab.locator(".moves strong").allTextContents();

before(async () => {
  await begin();
  cluster.worker("desk");
  await cluster.evoxo("submit", file("tables.toml", TABLES));
  await cluster.evoxo("submit", file("networks.toml", NETWORKS));
  const over = async (name) => (await cluster.run(name)).state === "finished";
  await until("the runs end", async () => (await over("tables")) && (await over("networks")));
});

after(end);

test("the address can be copied where the browser has a clipboard", async () => {
  const tab = await open("#/play");
  const copy = tab.getByRole("button", { name: "Copy the address" });
  await status(tab, "Your move, X.");
  assert.equal(await copy.count(), 1);
  // As over plain HTTP from another host, where browsers have no clipboard.
  await tab.addInitScript(() => Object.defineProperty(Navigator.prototype, "clipboard", { value: undefined }));
  await tab.reload();
  await status(tab, "Your move, X.");
  assert.equal(await copy.count(), 0);
  await tab.context().close();
});

test("tic-tac-toe by mouse against the perfect player, with hints and undo", async () => {
  const tab = await open("");
  await tab.getByRole("link", { name: "Play", exact: true }).click();
  await status(tab, "Your move, X.");
  await cell(tab, /^b2: empty/).click();
  await status(tab, /^O plays .*Your move, X\.$/);
  assert.deepEqual((await moves(tab)).map((move) => move[0]), ["X", "O"]);
  await tab.getByLabel("from").selectOption("perfect");
  const hints = tab.getByRole("region", { name: "What it thinks of each move" });
  await hints.getByRole("row").nth(7).waitFor();
  assert.match(await hints.getByRole("row").nth(1).textContent(), /it draws against perfect play/);
  await accessible(tab, "hints");
  await tab.getByRole("button", { name: "Undo" }).click();
  await until("no move is played", async () => (await moves(tab)).length === 0);
  await tab.context().close();
});

test("tic-tac-toe by keyboard, against a champion that a run leads to", async () => {
  const tab = await open("#/runs/tables");
  await tab.getByRole("link", { name: "Play against plays X" }).click();
  // The champion plays X only, so it moves first.
  await status(tab, /^X plays .*Your move, O\.$/);
  // The link leads to the best replica, as soon as the report says which one it is.
  assert.match(tab.url(), /x=tables\/1\/\d+&o=you&m=/);
  const first = (await moves(tab))[0].slice(2);
  await tab.getByLabel("Type a move").fill("z9");
  await tab.keyboard.press("Enter");
  await tab.getByText("z9 is not a legal move here").waitFor();
  // The arrow keys move from the first cell to an empty one.
  await cell(tab, /^a3/).focus();
  await tab.keyboard.press(first === "b3" ? "ArrowDown" : "ArrowRight");
  assert.match(await tab.evaluate(() => document.activeElement.getAttribute("aria-label")), /^(b3|a2): empty/);
  await tab.keyboard.press("Enter");
  await until("the opponent answers", async () => (await moves(tab)).length >= 3);
  // The whole game is in the address.
  const shared = await open(tab.url().slice(tab.url().indexOf("#")));
  await until("the same game is shown", async () => (await moves(shared)).join() === (await moves(tab)).join());
  await accessible(shared, "a shared game");
  await Promise.all([tab, shared].map((one) => one.context().close()));
});

test("4x4x4 against a network: on the rack by mouse, in the layers by keyboard, by typing", async () => {
  const tab = await open("#/play?o=networks/0/0");
  await status(tab, "Your move, X.");
  assert.equal(await tab.getByLabel("Game", { exact: true }).inputValue(), "score-four");
  await tab.locator(".rack .bead.next").first().click();
  await until("the opponent answers", async () => (await moves(tab)).length === 2);
  await cell(tab, /^a44/).focus();
  // There is no layer above; the arrow down moves to the layer below.
  await tab.keyboard.press("PageUp");
  assert.match(await tab.evaluate(() => document.activeElement.getAttribute("aria-label")), /^a44/);
  await tab.keyboard.press("PageDown");
  assert.match(await tab.evaluate(() => document.activeElement.getAttribute("aria-label")), /^a43/);
  await tab.keyboard.press("Space");
  await until("the opponent answers", async () => (await moves(tab)).length === 4);
  assert.equal((await moves(tab))[2], "X a4");
  await tab.getByLabel("Type a move").fill("D1");
  await tab.keyboard.press("Enter");
  await until("the opponent answers", async () => (await moves(tab)).length === 6);
  await tab.getByLabel("from").selectOption("networks/0/0");
  const hints = tab.getByRole("region", { name: "What it thinks of each move" });
  await hints.getByText(/it values this at/).nth(8).waitFor();
  await accessible(tab, "4x4x4 with hints");
  await tab.context().close();
});

test("hints are shown while two champions play, and when stepping through their game", async () => {
  const tab = await open("#/play/tic-tac-toe?x=tables/1/0&o=tables/0/0");
  await status(tab, "It is X's turn.");
  await tab.getByLabel("from").selectOption("mover");
  const rows = tab.getByRole("region", { name: "What it thinks of each move" }).getByRole("row");
  // Each empty cell shows what the table knows of it, beginning with the cell that the table chooses.
  await rows.nth(9).waitFor();
  assert.match(await rows.nth(1).textContent(), /its table says so: entry 1 of 58, for the board \.{9}/);
  assert.match(await rows.nth(2).textContent(), /not by its table: entry 1 of 58/);
  await tab.getByRole("button", { name: "One move" }).click();
  await until("there is one move", async () => (await moves(tab)).length === 1);
  await until("hints for O are shown", async () => (await rows.count()) === 9);
  assert.match(await rows.nth(1).textContent(), /its table says so: entry \d+ of 43/);
  // A champion of the other side gets a sentence instead.
  await tab.getByLabel("from").selectOption("tables/1/0");
  await tab.getByText("There are no hints here: this champion plays X only, and it is O's turn.").waitFor();
  await tab.getByRole("button", { name: "Earlier" }).click();
  await status(tab, "After 0 of 1 moves.");
  await rows.nth(9).waitFor();
  await tab.getByRole("button", { name: "Later" }).click();
  await tab.getByText("There are no hints here").waitFor();
  await tab.context().close();
});

/** A whole game against a player that moves at random; `make` makes our moves. */
async function whole(game, make) {
  const tab = await open(`#/play/${game}?x=you&o=random`);
  const over = /wins|win!|lose\.|draw/;
  const said = () => tab.locator(".status").textContent();
  for (let turn = 0; !over.test(await said()); turn += 1) {
    await until("it is my turn", async () => /Your move, X\.$/.test(await said()) || over.test(await said()));
    if (over.test(await said())) break;
    await make(tab, turn);
    await until("the move is played", async () => (await moves(tab)).length > 2 * turn);
  }
  const played = (await moves(tab)).length;
  assert.ok(played >= 7 && (await tab.getByLabel("Type a move").isHidden()), `${played} moves`);
  await accessible(tab, `the end of ${game}`);
  // The address has the whole game.
  const again = await open(tab.url().slice(tab.url().indexOf("#")));
  await until("the same game is shown", async () => (await moves(again)).length === played);
  await status(again, over);
  await Promise.all([tab, again].map((one) => one.context().close()));
}

/** The names of the playable cells, in the order of the board. */
const playable = (tab) => tab.locator(".layers .cell:not(.fixed)");

/** Plays in a cell with the arrow keys, starting at the first cell of its layer. */
async function byKeys(tab, cell, width, height) {
  const place = await cell.evaluate((node) => {
    const layer = node.closest(".layer");
    return [[...layer.parentElement.children].indexOf(layer), [...layer.querySelectorAll(".cell")].indexOf(node)];
  });
  const [layer, index] = place;
  await tab.locator(".layer").nth(layer).locator(".cell[tabindex='0']").focus();
  for (let step = 0; step < width; step += 1) await tab.keyboard.press("ArrowLeft");
  for (let step = 0; step < height; step += 1) await tab.keyboard.press("ArrowUp");
  for (let step = 0; step < index % width; step += 1) await tab.keyboard.press("ArrowRight");
  for (let step = 0; step < Math.floor(index / width); step += 1) await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("Enter");
}

test("a whole game of Connect Four by mouse, and one by keyboard", async () => {
  await whole("connect-four", (tab, turn) => playable(tab).nth(turn % 3).click());
  await whole("connect-four", (tab, turn) => byKeys(tab, playable(tab).nth(turn % 2), 7, 6));
});

test("a whole game of Qubic by mouse, and one by keyboard", async () => {
  await whole("qubic", (tab) => playable(tab).first().click());
  await whole("qubic", (tab) => byKeys(tab, playable(tab).last(), 4, 4));
});

test("two players play Connect Four move by move, then by themselves to the end", async () => {
  const tab = await open("#/play/connect-four?x=alpha-beta:3&o=filtered");
  await status(tab, "It is X's turn.");
  await tab.getByRole("button", { name: "One move" }).press("Enter");
  await until("there is one move", async () => (await moves(tab)).length === 1);
  await tab.getByRole("button", { name: "Play on" }).press("Enter");
  await until("the game ends", async () => /wins|draw/.test(await tab.locator(".status").textContent()));
  await accessible(tab, "the end of Connect Four");
  // Step through the game, and return to the end.
  const all = (await moves(tab)).length;
  const later = tab.getByRole("button", { name: "Later" });
  assert.ok(await later.isDisabled());
  for (const count of [all - 1, all - 2]) {
    await tab.getByRole("button", { name: "Earlier" }).press("Enter");
    await status(tab, `After ${count} of ${all} moves.`);
    assert.equal(await tab.getByRole("button", { name: /: [XO]/ }).count(), count);
  }
  await later.press("Enter");
  await later.press("Enter");
  await status(tab, /wins|draw/);
  await tab.context().close();
});

test("a coordinator that is slow or cannot be reached changes nothing on the board", async () => {
  const tab = await open("#/play/connect-four?x=you&o=random");
  await status(tab, "Your move, X.");
  // While a move is being sent, a second one is ignored.
  let release;
  const held = new Promise((done) => { release = done; });
  await tab.route("**/api/play/position*", (route) => held.then(() => route.continue()), { times: 1 });
  await playable(tab).nth(0).click();
  await playable(tab).nth(1).click();
  assert.deepEqual(await moves(tab), []);
  release();
  await until("the opponent answers", async () => (await moves(tab)).length === 2);
  assert.equal((await moves(tab))[0], "X a");
  // A move that was not delivered is not played, and can be repeated.
  await tab.route("**/api/play/position*", (route) => route.abort(), { times: 1 });
  await playable(tab).nth(2).click();
  await tab.getByText("It cannot be done:").waitFor();
  assert.equal((await moves(tab)).length, 2);
  await playable(tab).nth(2).click();
  await until("the opponent answers", async () => (await moves(tab)).length === 4);
  // An answer that was lost can be requested again.
  await tab.route("**/api/play/move*", (route) => route.abort(), { times: 1 });
  await playable(tab).nth(3).click();
  await status(tab, "It is O's turn.");
  await accessible(tab, "no answer");
  await tab.getByRole("button", { name: "Ask again" }).click();
  await until("the opponent answers", async () => (await moves(tab)).length === 6);
  // Keys count from the position that was last requested, not from the one still shown.
  await tab.route("**/api/play/position*", (route) => setTimeout(() => route.continue(), 200));
  const press = async (name, times) => {
    for (let count = 0; count < times; count += 1) await tab.getByRole("button", { name }).click();
  };
  await press("Earlier", 3);
  await status(tab, "After 3 of 6 moves.");
  await press("Later", 3);
  await status(tab, /Your move, X\.$/);
  await press("Earlier", 1);
  await status(tab, "After 5 of 6 moves.");
  await press("Undo", 2);
  await until("two moves are undone", async () => (await moves(tab)).length === 2);
  await tab.unroute("**/api/play/position*");
  // A position that was not received is not shown.
  await tab.route("**/api/play/position*", (route) => route.abort(), { times: 1 });
  await press("Earlier", 1);
  await tab.getByText("It cannot be done:").waitFor();
  await status(tab, /Your move, X\.$/);
  await press("Earlier", 1);
  await status(tab, "After 1 of 2 moves.");
  await tab.context().close();
});

test("players, sides and games are chosen by keyboard", async () => {
  const tab = await open("#/play");
  await status(tab, "Your move, X.");
  await tab.getByRole("button", { name: "Swap sides" }).press("Enter");
  await status(tab, /^X plays .*Your move, O\.$/);
  await tab.getByLabel("Game", { exact: true }).selectOption("qubic");
  await tab.getByRole("group", { name: "X", exact: true }).getByLabel("Player").selectOption("you");
  await tab.getByRole("group", { name: "O", exact: true }).getByLabel("Player").selectOption("benchmark");
  await status(tab, "Your move, X.");
  await cell(tab, /^c32: empty/).click();
  await until("the opponent answers", async () => (await moves(tab)).length === 2);
  const seat = tab.getByRole("group", { name: "O", exact: true });
  await seat.getByLabel("Player").selectOption("champion");
  await seat.getByLabel("Run").selectOption("networks");
  // Choosing a champion also chooses its game.
  const game = tab.getByLabel("Game", { exact: true });
  await until("the champion's game is shown", async () => (await game.inputValue()) === "score-four");
  await status(tab, "Your move, X.");
  await tab.context().close();
});

test("a champion is shown as boards or in words", async () => {
  const tab = await open("#/runs/tables");
  await tab.getByRole("link", { name: "plays X", exact: true }).click();
  await tab.getByText("A table that plays X").waitFor();
  assert.ok(await tab.getByRole("img", { name: /^[.XO]{3}\/[.XO]{3}\/[.XO]{3}: [abc][123]$/ }).count() > 20);
  await accessible(tab, "a champion as boards");
  await tab.getByLabel("Arm").selectOption("plays O");
  await tab.getByText("A table that plays O").waitFor();
  await tab.getByRole("link", { name: "Play against it" }).click();
  await status(tab, "Your move, X.");
  await tab.goto(`http://${cluster.address}/#/runs/networks/champions/0/0`);
  await tab.getByText("A network for 4x4x4 cells").waitFor();
  await tab.context().close();
  await allAccessible("a network", "#/runs/networks/champions/0/0", (one) => one.getByText("A network for").waitFor());
});

test("every board in light, dark and on a phone", async () => {
  const ready = (tab) => tab.locator(".status").getByText("Your move, X.").waitFor();
  await allAccessible("tic-tac-toe", "#/play/tic-tac-toe?x=you&o=tables/0/0", ready);
  await allAccessible("score-four", "#/play/score-four?x=you&o=you&m=a1.b2.a1.c3", ready);
  await allAccessible("connect-four", "#/play/connect-four?x=you&o=you&m=d.d", ready);
  await allAccessible("qubic", "#/play/qubic?x=you&o=you&m=a11.b23", ready);
});

test("champions are offered if the list of runs arrives after the players", async () => {
  const tab = await visit("#/elsewhere");
  await tab.context().route("**/api/events", (route) => setTimeout(() => route.continue(), 2000));
  await tab.goto(`${cluster.origin}/?#/play`);
  await tab.locator(".status").getByText("Your move, X.").waitFor();
  const kind = tab.getByRole("group", { name: "O", exact: true }).getByLabel("Player");
  const offered = async () => (await kind.locator("option").allTextContents()).includes("a champion of a run");
  await until("champions are offered", offered);
  // The choice so far stays.
  assert.equal(await kind.inputValue(), "perfect");
  await kind.selectOption("champion");
  await tab.getByText("This champion plays X only: swap the sides.").or(tab.getByText("Your move, X.")).first().waitFor();
  await tab.context().close();
});

test("the wall offers the strongest player and the best champion of each kind of experiment", async () => {
  const tab = await open("#/play");
  await tab.getByRole("link", { name: "A large board for a wall or a classroom" }).click();
  await status(tab, "Your move, X.");
  const opponents = tab.locator(".opponents button");
  await until("a champion is offered", async () => (await opponents.count()) === 2);
  assert.deepEqual(await opponents.locator("strong").allTextContents(), ["Perfect", "tables"]);
  const ended = async () => /(You win!|You lose\.|A draw\.)$/.test(await tab.locator(".status").textContent());
  const mine = async () => /Your move, X\.$/.test(await tab.locator(".status").textContent());
  for (const name of ["a1", "a2", "c2", "b3", "c3", "b1", "c1", "a3", "b2"]) {
    await until("it answers", async () => (await ended()) || mine());
    const place = cell(tab, name);
    if ((await ended()) || (await place.getAttribute("aria-disabled")) === "true") continue;
    await place.click();
    await until("it is played", async () => (await place.getAttribute("class")).includes("isX"));
  }
  await until("the end is counted", async () => !/won 0, drew 0, lost 0/.test(await opponents.first().textContent()));
  assert.match(await opponents.first().textContent(), /Visitors won 0, drew (1, lost 0|0, lost 1)$/);
  await opponents.last().click();
  await status(tab, /Your move, [XO]\./);
  assert.deepEqual(await opponents.evaluateAll((all) => all.map((one) => one.ariaPressed)), ["false", "true"]);
  await tab.context().close();
  await allAccessible("the wall", "#/wall/tic-tac-toe", async (other) => {
    await other.locator(".opponents button").nth(1).waitFor();
  });
});

test("another game keeps the kind of the opponent", async () => {
  const tab = await open("#/play/tic-tac-toe?x=you&o=tables/0/0");
  await status(tab, "Your move, X.");
  const game = tab.getByLabel("Game", { exact: true });
  const seat = tab.getByRole("group", { name: "O", exact: true });
  await game.selectOption("score-four");
  // A champion stays a champion, of another run.
  await until("the other champion plays", async () => /score-four\?x=you&o=networks\/0\/0/.test(tab.url()));
  assert.deepEqual([await seat.getByLabel("Player").inputValue(), await seat.getByLabel("Run").inputValue()],
    ["champion", "networks"]);
  await seat.getByLabel("Player").selectOption("benchmark");
  await game.selectOption("connect-four");
  await until("the benchmark stays", async () => /connect-four\?x=you&o=benchmark/.test(tab.url()));
  await tab.goto(`${cluster.origin}/#/play/tic-tac-toe?x=you&o=perfect`);
  await status(tab, "Your move, X.");
  // No other game has a perfect player.
  await game.selectOption("qubic");
  await until("the strongest plays instead", async () => /qubic\?x=you&o=alpha-beta/.test(tab.url()));
  await tab.context().close();
});

test("hints are colours and words for what is known, and short numbers otherwise", async () => {
  const tab = await open("#/play/tic-tac-toe?x=you&o=perfect&m=b2.b3");
  await status(tab, "Your move, X.");
  await tab.getByLabel("from").selectOption("perfect");
  await until("hints are shown", async () => (await tab.locator(".layers .hint").allTextContents()).join("") !== "");
  const shown = await tab.locator(".layers .cell").evaluateAll((cells) =>
    cells.map((cell) => [cell.className.match(/for(\w+)/)?.[1] ?? "", cell.querySelector(".hint").textContent]));
  assert.ok(shown.every(([look, word]) => look === word), JSON.stringify(shown));
  assert.ok(shown.some(([, word]) => word === "win") && shown.some(([, word]) => word === "draw"));
  await tab.locator(".key").getByText("for the side that moves").waitFor();
  await accessible(tab, "coloured hints");
  const numbers = [-0.001, -1.98, 0.5, -0.25, 12.34, -123456, 873324, 0.999];
  const hints = numbers.map((value) => hintOf({ value, says: "its score" }));
  assert.deepEqual(hints, ["0", "−2.0", ".50", "−.25", "12", "−1e5", "9e5", "1.0"]);
  await tab.context().close();
});

test("threats are those that the coordinator sees", async () => {
  let seen = 0;
  const games = { "tic-tac-toe": [3, 3, 1, false], "connect-four": [7, 6, 1, true], "score-four": [4, 4, 4, true] };
  for (const [name, [width, height, depth, gravity]] of Object.entries(games)) {
    const lines = linesOf({ width, height, depth, gravity });
    assert.equal(lines.length, { "tic-tac-toe": 8, "connect-four": 69, "score-four": 76 }[name]);
    for (const moves of { "tic-tac-toe": ["a1.b2.a2", "a1.b2.b1.a2"], "connect-four": ["d.e.d.e.d.e", "a.d.b.d.c"],
      "score-four": ["a1.b1.a1.b1.a1.b1", "a1.d4.b2.d3.c3.d2", "a1.b1.a2.b1.a3.b1"] }[name]) {
      const path = (what) => `${cluster.origin}/api/play/${what}?game=${name}&moves=${moves}&player=alpha-beta&plies=1`;
      const position = await (await fetch(path("position"))).json();
      const { thoughts } = await (await fetch(path("thoughts"))).json();
      const own = threats(lines, position.board)[position.to_move];
      const wins = thoughts.filter((thought) => outcomeOf(thought) === "win").map((thought) => thought.cell);
      const legal = position.legal.map((move) => move.cell).filter((cell) => own.has(cell));
      assert.deepEqual(wins.sort(), legal.sort(), `${name} ${moves}`);
      seen += wins.length;
    }
  }
  assert.ok(seen > 3, `${seen} threats`);
  const tab = await open("#/play/score-four?x=you&o=you&m=a1.b1.a2.b1.a3.b1");
  await status(tab, "Your move, X.");
  assert.equal(await tab.locator(".cell.threatX, .cell.threatO").count(), 0);
  await tab.getByRole("button", { name: "Threats" }).press("Enter");
  await cell(tab, /^a41: empty, would complete a line of X/).waitFor();
  await cell(tab, /^b14: empty, would complete a line of O/).waitFor();
  await accessible(tab, "threats");
  await tab.context().close();
});

test("the stone of the pile under the pointer is shown where it would fall, and a drag turns the rack", async () => {
  const tab = await open("#/play/score-four?x=you&o=you&m=a1.b1");
  await status(tab, "Your move, X.");
  const ghosts = tab.locator(".rack .ghost:not([hidden])");
  const box = await tab.locator(".rack .bead.next").nth(5).boundingBox();
  await tab.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.equal(await ghosts.count(), 1);
  const aimed = await tab.locator(".layers .cell[data-aimed]").getAttribute("aria-label");
  await tab.mouse.down();
  await tab.mouse.up();
  await until("the stone is played", async () => (await moves(tab)).length === 3);
  const label = await tab.locator(".layers .cell.last").getAttribute("aria-label");
  assert.equal(label.slice(0, 3), aimed.slice(0, 3));
  const place = () => tab.locator(".rack .axis").first().getAttribute("transform");
  const before = await place();
  await tab.mouse.move(box.x, box.y);
  await tab.mouse.down();
  await tab.mouse.move(box.x + 60, box.y, { steps: 4 });
  await tab.mouse.up();
  assert.notEqual(await place(), before);
  // The end of a drag is not a click.
  assert.equal((await moves(tab)).length, 3);
  await tab.context().close();
});

test("a shared game is replayed, and its analysis says where it was lost", async () => {
  const tab = await open("#/play/tic-tac-toe?x=you&o=random&m=a1.b2.b1.c1.a2.a3");
  await status(tab, "You lose.");
  await tab.getByRole("button", { name: "Replay" }).press("Enter");
  await status(tab, "After 0 of 6 moves.");
  await status(tab, "After 2 of 6 moves.");
  await status(tab, "You lose.");
  await tab.getByRole("button", { name: "Analyse the game" }).press("Enter");
  await tab.getByText("Here it was lost: move 5, X a2. It turned a draw into a loss for X; a3 kept a draw.").waitFor();
  assert.equal(await tab.locator(".evaluation circle").count(), 6);
  await accessible(tab, "an analysis");
  await tab.getByRole("button", { name: "Show the position before it" }).press("Enter");
  await status(tab, "After 4 of 6 moves.");
  await tab.getByRole("button", { name: "X b1" }).press("Enter");
  await status(tab, "After 3 of 6 moves.");
  await tab.context().close();
  // Without a fatal move, the largest mistake of the loser counts.
  const thought = (move, value) => ({ move, value, says: "4 plies ahead it values this" });
  const all = judged(["a", "b", "c"], [[thought("a", 0.1), thought("b", 0.2)], [thought("b", 0), thought("c", 0.5)],
    [thought("c", 0.3)]]);
  assert.deepEqual([turningPoint(all, "X").move, turningPoint(all, "O").move, turningPoint(all, "draw").move],
    ["b", "a", "b"]);
});

test("nothing was fetched from other hosts, and no browser reported an error", blameless);

test("an impossible game has a message", async () => {
  const tab = await open("#/play?o=nowhere/0/0");
  await tab.getByText("This cannot be played: there is no run of this name here.").waitFor();
  await tab.goto(`http://${cluster.address}/#/play/tic-tac-toe?x=you&o=you&m=a1.a1`);
  await tab.getByText('It cannot be done: "a1" is not a legal move here.').waitFor();
  await accessible(tab, "no such move");
  await tab.context().close();
});
