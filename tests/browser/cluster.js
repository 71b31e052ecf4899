// A coordinator and workers as processes, with their own store.

import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

export const PROGRAMS = process.env.EVOXO_PROGRAMS ?? "target/release";
const PATIENCE_MS = 120_000;

/** Waits until `holds` returns a true value, and returns it. `what` completes the sentence "waiting until". */
export async function until(what, holds) {
  const begun = Date.now();
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() - begun > PATIENCE_MS) throw new Error(`timed out waiting until ${what}`);
    await pause(50);
  }
}

export class Cluster {
  directory = mkdtempSync(join(tmpdir(), "evoxo-page-"));
  address = "127.0.0.1:0";
  /** The origin of the page. */
  origin = "";
  /** The access directory, if there is one. */
  access = "";
  processes = new Set();

  #start(program, options, output) {
    const log = openSync(join(this.directory, `${program}.log`), "a");
    const child = spawn(join(PROGRAMS, program), options, { stdio: ["ignore", output, log] });
    this.processes.add(child);
    return child;
  }

  /** From now on the page requires a login. */
  async secure() {
    this.access = join(this.directory, "access");
    const child = this.#start("evoxo-coordinator", ["init", "--name", "localhost", "--access", this.access], "ignore");
    await new Promise((done) => child.once("exit", done));
    this.processes.delete(child);
  }

  /** Starts the coordinator, on its previous address if it had one. */
  async coordinator() {
    const options = ["--listen", this.address, "--store", join(this.directory, "store"), "--announce"];
    if (this.access) options.push("--access", this.access, "--page", "127.0.0.1:0");
    this.leader = this.#start("evoxo-coordinator", [...options, "--checkpoint-interval", "200ms"], "pipe");
    const [line] = await Promise.all([
      new Promise((done) => this.leader.stdout.once("data", (data) => done(String(data)))),
    ]);
    this.address = line.trim();
    const log = readFileSync(join(this.directory, "evoxo-coordinator.log"), "utf8");
    const port = [...log.matchAll(/the page is at https:\/\/[^/]*:(\d+)\//g)].at(-1)?.[1];
    this.origin = port ? `https://localhost:${port}` : `http://${this.address}`;
  }

  worker(name, ...options) {
    const all = ["--coordinator", this.address, "--name", name, "--slots", "1", ...options];
    return this.#start("evoxo-worker", all, "ignore");
  }

  /** kill -9. */
  async kill(child) {
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
    this.processes.delete(child);
  }

  /** The output of the command-line client. */
  async evoxo(...words) {
    const access = this.access ? { EVOXO_ACCESS: join(this.access, "operator.access") } : {};
    const env = { ...process.env, ...access };
    const child = spawn(join(PROGRAMS, "evoxo"), [...words, "--coordinator", this.address], { env });
    let text = "";
    child.stdout.on("data", (data) => { text += data; });
    child.stderr.on("data", (data) => { text += data; });
    const status = await new Promise((done) => child.once("close", done));
    if (status !== 0) throw new Error(`evoxo ${words.join(" ")}: ${text}`);
    return text;
  }

  /** A run as the client sees it. */
  async run(name) {
    return JSON.parse(await this.evoxo("runs", "--json")).find((run) => run.name === name);
  }

  async end() {
    await Promise.all([...this.processes].map((child) => this.kill(child)));
    rmSync(this.directory, { recursive: true, force: true });
  }
}
