/**
 * Slow work, as a process of its own: `slow-work.ts <milliseconds> blocked|waiting`. It blocks the main thread, as one long call
 * of SQLite does, or it waits, as for a network.
 */
import { startProgress } from "../../src/cli/progress.ts";
import { withProgress } from "../../src/core/progress.ts";

const [ms = "0", how = "blocked", clears = "clears-lines"] = process.argv.slice(2);
const terminal = { columns: process.stderr.columns || 80, clearsLines: clears === "clears-lines" };
await withProgress(startProgress("working hard", terminal), async ({ update }) => {
  update(1_200, 4_800);
  if (how === "blocked") Bun.sleepSync(Number(ms));
  else await Bun.sleep(Number(ms));
});
console.log("done");
