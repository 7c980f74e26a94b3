import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { SECOND_MS } from "../core/time.ts";
import { monotonicMs, PHASE, type WorkerInput } from "./progress.ts";
import { progressLine } from "./progress-line.ts";

/** The whole program of a thread that draws the progress of one step: see `progress.ts`. */

const STDERR = 2;
const SHOWN_AFTER_MS = 2 * SECOND_MS;
const REDRAWN_EVERY_MS = SECOND_MS / 5;
const WHOLE_LINES_EVERY_MS = 10 * SECOND_MS;
const CLEAR_TO_END = "\u001b[K";

const { step, terminal, shared, startedAt } = workerData as WorkerInput;
let drawnAt = Number.NEGATIVE_INFINITY;
let drawn = "";

const timer = setInterval(() => {
  const now = monotonicMs();
  if (now - startedAt < SHOWN_AFTER_MS) return;
  const { QUIET, SHOWN, STOPPED } = PHASE;
  if (Atomics.compareExchange(shared.phase, 0, QUIET, SHOWN) === STOPPED) return clearInterval(timer);
  if (!terminal.clearsLines && now - drawnAt < WHOLE_LINES_EVERY_MS) return;
  const [done, total] = [...shared.figures].map((figure) => (Number.isNaN(figure) ? null : figure));
  const whole = progressLine(step, { done: done ?? null, total: total ?? null }, now - startedAt);
  const line = whole.slice(0, terminal.columns - 1);
  if (line === drawn) return;
  draw(line);
  drawn = line;
  drawnAt = now;
}, REDRAWN_EVERY_MS);

/** The cursor goes back to the start of the line, so that a line of the log overwrites it. */
function draw(line: string): void {
  writeSync(STDERR, terminal.clearsLines ? `${line}${CLEAR_TO_END}\r` : `${line}\n`);
}

parentPort?.once("message", () => {
  clearInterval(timer);
  if (terminal.clearsLines) writeSync(STDERR, CLEAR_TO_END);
  parentPort?.postMessage("cleared");
});
