
// Champions that people can play against. The answers of a 3x3 champion were computed when this file was made, and come in
// the order of the boards' numbers (in base 3, the first cell is the least significant digit, X is 1 and O is 2). For a
// network on a larger board, the file holds the weights, and this script computes its values, in double precision.

/** The first of all moves whose values are this close to the best one is played: only rounding distinguishes them. */
const NEAR = 1e-6;

const toMove = (board) => (board.filter(Boolean).length % 2 === 0 ? 1 : 2);
const numberOf = (board) => board.reduceRight((number, stone) => 3 * number + stone, 0);
const letterOf = (stone) => ["", "X", "O"][stone];

/** The rules of k in a row. Cells are numbered from the top left, the top layer first. */
function rulesOf({ width, height, depth, k, gravity }) {
  const cells = [...Array(width * height * depth).keys()];
  const layer = width * height;
  const partsOf = (cell) => [cell % width, Math.floor(cell / width) % height, Math.floor(cell / layer)];
  const cellAt = ([x, y, z]) => {
    const inside = x >= 0 && x < width && y >= 0 && y < height && z >= 0 && z < depth;
    return inside ? z * layer + y * width + x : -1;
  };
  const codes = [...Array(27).keys()].map((code) => [code % 3, Math.floor(code / 3) % 3, Math.floor(code / 9)]);
  const steps = codes.map((code) => code.map((part) => part - 1)).filter((step) => step.findLast(Boolean) === 1);
  const lineFrom = (start, step) =>
    [...Array(k).keys()].map((count) => cellAt(partsOf(start).map((part, axis) => part + count * step[axis])));
  const lines = steps.flatMap((step) => cells.map((start) => lineFrom(start, step)))
    .filter((line) => !line.includes(-1))
    .map((line) => line.sort((one, other) => one - other));
  // Sorted as numbers with one bit for each cell.
  lines.sort((one, other) => {
    const place = one.findLastIndex((cell, index) => cell !== other[index]);
    return place < 0 ? 0 : one[place] - other[place];
  });
  const fall = depth === 1 ? width : layer;
  const canPlay = (board, cell) =>
    !board[cell] && (!gravity || cell + fall >= cells.length || Boolean(board[cell + fall]));
  const legal = (board) => cells.filter((cell) => canPlay(board, cell));
  const lineOf = (board) =>
    lines.find((line) => board[line[0]] && line.every((cell) => board[cell] === board[line[0]]));
  const names = cells.map((cell) => {
    const [x, y, z] = partsOf(cell);
    return `${String.fromCharCode(97 + x)}${height - y}${depth === 1 ? "" : depth - z}`;
  });
  return {
    cells, lines, names, width, height, depth, fall, partsOf, cellAt, canPlay, legal, lineOf,
    isOver: (board) => Boolean(lineOf(board)) || board.every(Boolean),
    /** A move's name, without the parts that gravity decides. */
    moveName: (cell) => (gravity ? names[cell].slice(0, depth === 1 ? 1 : 2) : names[cell]),
    /** The cell to which a stone falls from this cell. */
    landing: (board, cell) => {
      if (!gravity || canPlay(board, cell)) return cell;
      return cells.find((other) => (other - cell) % fall === 0 && canPlay(board, other)) ?? cell;
    },
    /** The legal cells that complete a line of this side. */
    wins: (board, side) => legal(board).filter((cell) => {
      const after = board.with(cell, side);
      return lines.some((line) => line.includes(cell) && line.every((other) => after[other] === side));
    }),
  };
}

/** The value of a board for the side that has just moved, for a network with this architecture and these weights. */
function valueOf({ first, second, biases, activation }, weights, rules) {
  const scale = activation === "tanh" ? 1 : 0.5;
  const active = (sum) => Math.tanh(scale * sum);
  let from = 0;
  const take = (count) => weights.subarray(from, (from += count));
  const biasesOf = (count) => (biases ? take(count) : new Float32Array(count));
  const full = (below, to, own) => {
    const sums = Float64Array.from(own);
    below.forEach((value, input) => {
      const row = input * own.length;
      for (let unit = 0; unit < own.length && value !== 0; unit += 1) sums[unit] += value * to[row + unit];
    });
    return sums;
  };
  if (first.tuples) {
    const { states } = first.tuples;
    const entries = states ** rules.lines[0].length;
    const [tables, bias] = [take(rules.lines.length * entries), biasesOf(1)];
    return (board, side) => {
      const digit = (cell) => {
        if (board[cell]) return board[cell] === side ? 1 : 2;
        return states === 4 && rules.canPlay(board, cell) ? 3 : 0;
      };
      const state = (line) => line.reduceRight((number, cell) => states * number + digit(cell), 0);
      return active(rules.lines.reduce((sum, line, index) => sum + tables[index * entries + state(line)], bias[0]));
    };
  }
  const each = first.lines?.detectors;
  const units = each ? rules.lines.length * each : first.dense.units;
  const inputs = each ? rules.lines.flat() : rules.cells;
  const [one, oneBias] = [take(inputs.length * (each ?? units)), biasesOf(units)];
  const [two, twoBias] = second ? [take(units * second), biasesOf(second)] : [];
  const [out, outBias] = [take(second || units), biasesOf(1)];
  return (board, side) => {
    const seen = (cell) => (board[cell] === 0 ? 0 : board[cell] === side ? 1 : -1);
    let sums;
    if (each) {
      const k = rules.lines[0].length;
      sums = Float64Array.from(oneBias);
      inputs.forEach((cell, place) => {
        const unit = Math.floor(place / k) * each;
        for (let next = 0; next < each; next += 1) sums[unit + next] += seen(cell) * one[place * each + next];
      });
    } else {
      sums = full(inputs.map(seen), one, oneBias);
    }
    const below = second ? full(sums.map(active), two, twoBias).map(active) : sums.map(active);
    return active(full(below, out, outBias)[0]);
  };
}

/** A network as a player: the values of all legal moves, and the move that it chooses, the same as in evoxo. */
function networkPlayer({ network, weights, wins }, rules) {
  const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const value = valueOf(JSON.parse(network), new Float32Array(bytes.buffer), rules);
  const values = (board) => {
    const side = toMove(board);
    return rules.legal(board).map((cell) => [cell, value(board.with(cell, side), side)]);
  };
  const choose = (board) => {
    const side = toMove(board);
    const [won] = wins === "learned" ? [] : rules.wins(board, side);
    if (won !== undefined) return { cell: won, says: ", which completes a line" };
    const [blocked] = wins === "filtered" ? rules.wins(board, 3 - side) : [];
    if (blocked !== undefined) return { cell: blocked, says: ", which blocks a line" };
    const all = values(board);
    const best = Math.max(...all.map(([, worth]) => worth));
    const [cell, worth] = all.find(([, worth]) => worth >= best - NEAR);
    return { cell, says: `, which it values at ${worth.toFixed(3)}` };
  };
  return { choose, values };
}

/** A 3x3 champion: its answers on all boards that play can reach and on which the game is not over. */
function answersPlayer({ answers }, rules) {
  const found = new Set();
  const open = [Array(9).fill(0)];
  while (open.length > 0) {
    const board = open.pop();
    const number = numberOf(board);
    if (rules.isOver(board) || found.has(number)) continue;
    found.add(number);
    rules.legal(board).forEach((cell) => open.push(board.with(cell, toMove(board))));
  }
  const places = new Map([...found].sort((one, other) => one - other).map((number, place) => [number, place]));
  return { choose: (board) => ({ cell: Number(answers[places.get(numberOf(board))]), says: "" }) };
}

/** The board's buttons, in a group for each layer, the lowest first. With several layers, Tab reaches only one of them. */
function buttonsOf(place, rules, play) {
  const layers = made("div", place);
  layers.className = rules.depth > 1 ? "layers" : "";
  const buttons = [];
  for (let z = rules.depth - 1; z >= 0; z -= 1) {
    const box = made("div", layers);
    const name = rules.depth > 1 ? `Layer ${rules.depth - z}` : "Board";
    if (rules.depth > 1) made("p", box, name).className = "soft";
    const grid = made("div", box);
    grid.className = `grid w${rules.width}`;
    grid.setAttribute("role", "group");
    grid.setAttribute("aria-label", name);
    for (const cell of rules.cells.filter((one) => rules.partsOf(one)[2] === z)) {
      const button = made("button", grid);
      button.type = "button";
      button.addEventListener("click", () => play(cell));
      button.addEventListener("keydown", (event) => walk(event, cell));
      buttons[cell] = button;
    }
  }
  const STEPS = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0],
    PageUp: [0, 0, -1], PageDown: [0, 0, 1] };
  function reach(cell) {
    if (rules.depth > 1) buttons.forEach((button, other) => { button.tabIndex = other === cell ? 0 : -1; });
  }
  function walk(event, cell) {
    const step = STEPS[event.key];
    const to = step ? rules.cellAt(rules.partsOf(cell).map((part, axis) => part + step[axis])) : -1;
    if (to < 0) return;
    event.preventDefault();
    reach(to);
    buttons[to].focus();
  }
  reach(rules.cells.length - rules.width * rules.height);
  return buttons;
}

function setUpGame(place) {
  const { side, shape } = place.dataset;
  const rules = rulesOf(JSON.parse(shape));
  const player = place.dataset.answers ? answersPlayer(place.dataset, rules) : networkPlayer(place.dataset, rules);
  let person = side === "X" ? 2 : 1;
  let board = [];
  let last = -1;
  const status = made("p", place);
  status.setAttribute("role", "status");
  const buttons = buttonsOf(place, rules, (cell) => play(rules.landing(board, cell)));
  const again = made("button", place, "Play again");
  again.type = "button";
  again.addEventListener("click", () => {
    // Against a champion that plays both sides, sides alternate.
    if (!side) person = 3 - person;
    begin();
  });

  function show(said) {
    const line = rules.lineOf(board) ?? [];
    const over = rules.isOver(board);
    buttons.forEach((button, cell) => {
      const letter = letterOf(board[cell]);
      button.textContent = letter;
      button.className = `${letter} ${line.includes(cell) ? "won" : ""} ${cell === last ? "last" : ""}`;
      const next = rules.depth > 1 && rules.canPlay(board, cell) ? "empty, next" : "empty";
      button.setAttribute("aria-label", `${rules.names[cell]}: ${letter || next}`);
      button.setAttribute("aria-disabled", over || !rules.canPlay(board, cell));
    });
    const won = line.length && board[line[0]];
    const end = won ? (won === person ? "You win!" : "You lose.") : "A draw.";
    status.textContent = `${said}${over ? end : `Your move, ${letterOf(person)}.`}`;
  }

  function answer() {
    if (rules.isOver(board)) return show("");
    const { cell, says } = player.choose(board);
    board[cell] = toMove(board);
    last = cell;
    show(`It plays ${rules.moveName(cell)}${says}. `);
  }

  function play(cell) {
    if (!rules.canPlay(board, cell) || rules.isOver(board)) return;
    board[cell] = person;
    last = cell;
    answer();
  }

  function begin() {
    board = rules.cells.map(() => 0);
    last = -1;
    if (person === 2) answer();
    else show("");
  }
  begin();
}

for (const place of document.querySelectorAll(".game")) setUpGame(place);
