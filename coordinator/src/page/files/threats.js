// Threats: empty cells that would complete a line of one side. This is the only rule that the page knows: the
// coordinator answers who has won, and which moves are legal.

/** The lines of a game as lists of cells. */
export function linesOf({ width, height, depth }) {
  const length = Math.min(4, Math.max(width, height));
  const steps = [-1, 0, 1];
  const ways = steps.flatMap((dz) => steps.flatMap((dy) => steps.map((dx) => [dx, dy, dz])))
    .filter(([dx, dy, dz]) => dz > 0 || (dz === 0 && (dy > 0 || (dy === 0 && dx > 0))));
  const lines = [];
  for (let cell = 0; cell < width * height * depth; cell += 1) {
    const at = [cell % width, Math.floor(cell / width) % height, Math.floor(cell / (width * height))];
    for (const way of ways) {
      const end = at.map((value, axis) => value + (length - 1) * way[axis]);
      if (!end.every((value, axis) => value >= 0 && value < [width, height, depth][axis])) continue;
      const step = way[0] + width * way[1] + width * height * way[2];
      lines.push(Array.from({ length }, (_, index) => cell + index * step));
    }
  }
  return lines;
}

/** The cells that would complete a line of X, and those of O. */
export function threats(lines, board) {
  const found = { X: new Set(), O: new Set() };
  for (const line of lines) {
    const empty = line.filter((cell) => board[cell] === ".");
    if (empty.length !== 1) continue;
    const [side, ...others] = new Set(line.map((cell) => board[cell]).filter((letter) => letter !== "."));
    if (others.length === 0) found[side].add(empty[0]);
  }
  return found;
}
