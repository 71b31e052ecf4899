// Rosenbrock's valley in 30 dimensions in JavaScript, with protocol version 1 (docs/own-problem.md): node rosen.js
//
//     evoxo run rosen.toml --program rosen="node /path/to/rosen.js"
//
// Products and sums have the same bits in every engine. Math.exp, Math.sin, Math.pow and ** may differ.
"use strict";

const readline = require("node:readline");

const LENGTH = 30;

// Standard output is reserved for the protocol.
console.log = console.error;
const send = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function rosen(x) {
    let cost = 0;
    for (let i = 0; i + 1 < x.length; i++) {
        const valley = x[i + 1] - x[i] * x[i];
        cost += 100 * valley * valley + (1 - x[i]) * (1 - x[i]);
    }
    return cost;
}

function evaluate(item) {
    const cost = rosen(item.genes.x);
    // JSON.stringify would write null.
    return Number.isFinite(cost) ? { f: [cost] } : { fail: `cost is ${cost}` };
}

send({
    evoxo: 1,
    name: "rosen",
    version: "js-1",
    objectives: ["min cost"],
    genome: [{ name: "x", type: "real", length: LENGTH, low: -5, high: 5 }],
});
readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const request = JSON.parse(line);
    send({ batch: request.batch, items: request.items.map(evaluate) });
});
