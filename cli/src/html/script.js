"use strict";
// Pointing at a picture, or the arrow keys in it, give its figures. They stand beside it as JSON; where its points are
// drawn is read from its lines. Without this script, the table behind each picture has the same figures.

const SVG = "http://www.w3.org/2000/svg";
const SHOWN_MAX = 10;

function made(tag, parent, text) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function shown(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** The places of a line's points, in the units of the picture. */
function places(line) {
  const pairs = line.getAttribute("d").matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g);
  return [...pairs].map((pair) => [Number(pair[1]), Number(pair[2])]);
}

function nearest(points, x) {
  let best = 0;
  points.forEach((point, index) => {
    if (Math.abs(point[0] - x) < Math.abs(points[best][0] - x)) best = index;
  });
  return best;
}

function setUp(figure) {
  const svg = figure.querySelector("svg");
  const frame = figure.querySelector(".plot");
  const source = figure.querySelector("script");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const lines = [...svg.querySelectorAll("g[clip-path] > path[fill=none]")];
  const curves = data.series.map((series, index) => ({ ...series, line: lines[index], at: places(lines[index]) }));
  const longest = curves.reduce((one, other) => (other.at.length > one.at.length ? other : one));
  if (longest.at.length === 0) return;
  const axes = svg.querySelector("clipPath rect");
  const marks = document.createElementNS(SVG, "g");
  svg.append(marks);
  const tip = made("div", figure);
  tip.className = "tip";
  tip.hidden = true;
  let chosen = null;

  function hide() {
    chosen = null;
    tip.hidden = true;
    marks.replaceChildren();
  }

  function show(index, height) {
    chosen = index;
    const right = longest.at[index][0];
    const found = curves.map((curve) => {
      const place = curve.at.length ? nearest(curve.at, right) : -1;
      const there = place >= 0 && Math.abs(curve.at[place][0] - right) < 4;
      return there && { curve, point: curve.points[place], at: curve.at[place] };
    }).filter(Boolean);
    found.sort((one, other) => Math.abs(one.at[1] - height) - Math.abs(other.at[1] - height));
    const near = found.slice(0, SHOWN_MAX).sort((one, other) => one.at[1] - other.at[1]);
    const line = document.createElementNS(SVG, "path");
    const [top, tall] = [Number(axes.getAttribute("y")), Number(axes.getAttribute("height"))];
    line.setAttribute("d", `M${right} ${top}v${tall}`);
    line.setAttribute("class", "cursor");
    marks.replaceChildren(line);
    tip.replaceChildren();
    made("p", tip, `${data.x} ${shown(longest.points[index][0])}`);
    const table = made("table", tip);
    for (const { curve, point, at } of near) {
      const dot = document.createElementNS(SVG, "circle");
      const colour = getComputedStyle(curve.line).stroke;
      for (const [name, value] of Object.entries({ cx: at[0], cy: at[1], r: 4, fill: colour, class: "dot" })) {
        dot.setAttribute(name, value);
      }
      marks.append(dot);
      const row = made("tr", table);
      made("i", made("td", row)).style.background = colour;
      made("th", row, curve.name);
      made("td", row, shown(point[1]));
      const band = point.length > 2 && point[2] !== point[3];
      made("td", row, band ? `${shown(point[2])} to ${shown(point[3])}` : "");
    }
    if (found.length > near.length) made("p", tip, `and ${found.length - near.length} others`);
    tip.hidden = false;
    // Below the axis, where it hides no curve.
    const box = figure.getBoundingClientRect();
    const shape = svg.getBoundingClientRect();
    const x = shape.left - box.left + (right / svg.viewBox.baseVal.width) * shape.width;
    const left = x - tip.offsetWidth / 2;
    const below = ((top + tall + 28) / svg.viewBox.baseVal.height) * shape.height;
    tip.style.left = `${Math.max(4, Math.min(left, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${shape.top - box.top + below}px`;
  }

  frame.addEventListener("pointermove", (event) => {
    const shape = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / shape.width;
    const [x, y] = [(event.clientX - shape.left) * scale, (event.clientY - shape.top) * scale];
    show(nearest(longest.at, x), y);
  });
  frame.addEventListener("pointerleave", hide);
  frame.addEventListener("blur", hide);
  frame.addEventListener("keydown", (event) => {
    const last = longest.at.length - 1;
    const to = { ArrowLeft: (chosen ?? last + 1) - 1, ArrowRight: (chosen ?? -1) + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined) return;
    event.preventDefault();
    show(Math.max(0, Math.min(last, to)), 0);
  });
}

for (const figure of document.querySelectorAll("figure[data-curves]")) setUp(figure);

// Champions of 3x3 can be played. What they answer on each board was computed when this file was made, and stands in
// the order of the boards' numbers: in base 3, the first cell least, X is 1 and O is 2.

const LINES = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
const NAMES = ["a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1"];

const toMove = (board) => (board.filter(Boolean).length % 2 === 0 ? 1 : 2);
const lineOf = (board) => LINES.find(([a, b, c]) => board[a] && board[a] === board[b] && board[a] === board[c]);
const isOver = (board) => Boolean(lineOf(board)) || board.every(Boolean);
const numberOf = (board) => board.reduceRight((number, stone) => 3 * number + stone, 0);

/** The place of each board among those that play can lead to and that are not over. */
function boardPlaces() {
  const found = new Set();
  const open = [Array(9).fill(0)];
  while (open.length > 0) {
    const board = open.pop();
    const number = numberOf(board);
    if (isOver(board) || found.has(number)) continue;
    found.add(number);
    board.forEach((stone, cell) => stone || open.push(board.with(cell, toMove(board))));
  }
  return new Map([...found].sort((one, other) => one - other).map((number, place) => [number, place]));
}

function setUpGame(place, boards) {
  const { answers, side } = place.dataset;
  let person = side === "X" ? 2 : 1;
  let board = [];
  const letter = (stone) => ["", "X", "O"][stone];
  const status = made("p", place);
  status.setAttribute("role", "status");
  const grid = made("div", place);
  grid.className = "grid";
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", "Board");
  const cells = NAMES.map((name, cell) => {
    const button = made("button", grid);
    button.type = "button";
    button.addEventListener("click", () => play(cell));
    return button;
  });
  const again = made("button", place, "Play again");
  again.type = "button";
  again.addEventListener("click", () => {
    // A champion of both sides takes turns.
    if (!side) person = 3 - person;
    begin();
  });

  function show(said) {
    const line = lineOf(board) ?? [];
    cells.forEach((button, cell) => {
      button.textContent = letter(board[cell]);
      button.className = `${letter(board[cell])} ${line.includes(cell) ? "won" : ""}`;
      button.setAttribute("aria-label", `${NAMES[cell]}: ${letter(board[cell]) || "empty"}`);
      button.setAttribute("aria-disabled", Boolean(board[cell]) || isOver(board));
    });
    const won = line.length && board[line[0]];
    const end = won ? (won === person ? "You win!" : "You lose.") : "A draw.";
    status.textContent = `${said}${isOver(board) ? end : `Your move, ${letter(person)}.`}`;
  }

  function answer() {
    if (isOver(board)) return show("");
    const cell = Number(answers[boards.get(numberOf(board))]);
    board[cell] = toMove(board);
    show(`It plays ${NAMES[cell]}. `);
  }

  function play(cell) {
    if (board[cell] || isOver(board)) return;
    board[cell] = person;
    answer();
  }

  function begin() {
    board = Array(9).fill(0);
    if (person === 2) answer();
    else show("");
  }
  begin();
}

const games = document.querySelectorAll(".game");
if (games.length > 0) {
  const boards = boardPlaces();
  for (const place of games) setUpGame(place, boards);
}
