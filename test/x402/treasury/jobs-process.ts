/**
 * The jobs of a treasury in a process of their own, on a ledger on the disk, for a test that kills it: they run until all is
 * credited and paid, and a block is made after each run.
 */
import { openForCommands } from "../../../src/app/ledger.ts";
import { readConfig, readSecrets } from "../../../src/config.ts";
import { keepRailStates } from "../../../src/services/rails/states.ts";
import { withCommands } from "../../support/failing-commands.ts";
import { must } from "../../support/organisations.ts";
import { CHAIN_ID } from "../chain.ts";
import { STEP_MS, treasuryJobs } from "./treasury-stage.ts";

/** After so many commits it kills itself; 0: never. */
const [chainUrl = "", commits = "0"] = process.argv.slice(2);
const ROUNDS = 1;

const config = must(readConfig({}));
const opened = await openForCommands(config, must(readSecrets()));
let left = Number(commits);
const ctx = withCommands(opened.ctx, async (_, go) => {
  const answer = await go();
  if (--left === 0) process.kill(process.pid, "SIGKILL");
  return answer;
});
const [treasury] = ctx.treasuries;
const url = config.evmRpc.get(CHAIN_ID);
if (!treasury || !url) throw new Error("there is no treasury in the settings");
let time = 0;
const jobs = treasuryJobs(ctx, {
  treasury,
  url,
  monotonicNow: () => time,
  report: (what) => console.error(what),
});
await keepRailStates(ctx);
for (let round = 0; round < ROUNDS; round++) {
  time += STEP_MS;
  await jobs.deposits.run();
  await jobs.payouts.run();
  await fetch(chainUrl, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "evm_mine", params: [] }),
  });
}
await opened.close();
process.exit();
