import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { createTestContext } from "../support/context.ts";
import { SCRIPTED } from "../support/stage.ts";
import { firstSteps, history } from "./commands.ts";
import { counts, type Gates, Run } from "./run.ts";
import { createSimulated } from "./service.ts";
import { watchStoreOrder } from "./store-order.ts";

/**
 * Random histories, run against the service with its store and against a plain model, which must agree after every step.
 * SIMULATION_RUNS=20000 runs for longer; SIMULATION_SEED and SIMULATION_PATH run again what failed.
 */
const RUNS_DEFAULT = 12;
const RUNS = Number(process.env.SIMULATION_RUNS ?? RUNS_DEFAULT);
const SEED = process.env.SIMULATION_SEED;
/** One takes a quarter of a second. */
const LONGEST_MS = 60_000 + RUNS * 1_000;
const PATH = process.env.SIMULATION_PATH;
/** The audit reads the whole database, so a new database begins after so many runs. */
const RUNS_OF_A_DATABASE = 5;

/** Turns of the event loop that a source may take. */
const MOST_TURNS = 4n;

/** The context that runs share, with a source that answers when its gate opens. */
function createSimulation() {
  const gates: Gates = new Map();
  const ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (url, ...asked) => {
      const name = decodeURIComponent(new URL(url).search.slice(1));
      const gate = gates.get(name);
      gate?.begun();
      await gate?.go;
      // Of checks that are let go together, one that was let go later may end earlier.
      for (let turns = Number(Bun.hash(name) % MOST_TURNS); turns > 0; turns--) await Bun.sleep(0);
      return SCRIPTED.fetchEvidence(url, ...asked);
    },
  });
  return { ctx, gates, store: watchStoreOrder(ctx), runs: 0 };
}

let simulation = createSimulation();
afterAll(() => simulation.ctx.close());

test(
  `${RUNS} random histories: the service and a plain model agree after every step`,
  async () => {
    const histories = fc.asyncProperty(history, async ({ given, steps }) => {
      if (simulation.runs === RUNS_OF_A_DATABASE) {
        const { ctx } = simulation;
        simulation = createSimulation();
        await ctx.close();
      }
      simulation.runs += 1;
      simulation.gates.clear();
      const { ctx, gates, store } = simulation;
      const run = new Run(await createSimulated(ctx, given), ctx, gates, store);
      try {
        for (const next of [...firstSteps(given), ...steps]) await run.step(next);
        await run.finishAll();
        expect(await ctx.store.audit()).toEqual([]);
      } catch (error) {
        // Shrinking needs a new database: in this one the failure may not happen again.
        run.abandon();
        simulation = createSimulation();
        throw error;
      }
    });
    await fc.assert(histories, {
      numRuns: RUNS,
      ...(SEED !== undefined && { seed: Number(SEED) }),
      ...(PATH !== undefined && { path: PATH }),
    });
  },
  LONGEST_MS,
);

// Fewer runs may miss an outcome by chance. CI plays enough.
test.skipIf(RUNS < 400)("the histories had every outcome that they should have", () => {
  const ended = ["held", "released", "partially_released", "refunded", "expired", "escalated", "frozen"];
  const outcomes = {
    open: [
      ...["201", "201 replayed", "deadline_in_past", "idempotency_key_reused", "agent_key_mismatch"],
      ...["agent_id_required", "agent_not_active", "agent_not_found", "policy_max_amount_exceeded"],
      ...["session_ceiling_exceeded", "session_expired", "session_revoked", "insufficient_funds"],
      ...["session_failure_budget_spent", "session_warrant_limit_reached", "kill_switch_active"],
      "session_limit_exceeded",
    ],
    verify: [
      "session_limit_exceeded",
      "200",
      "200 replayed",
      "agent_key_mismatch",
      "illegal_transition",
      "version_conflict",
    ],
    settle: ["200", "illegal_transition", "validation_failed", "version_conflict", "user_session_required"],
    resolve: ["200", "escalation_not_found", "illegal_transition"],
    fund: ["done", "deposit_reference_used", "validation_failed"],
    correct: [
      ...["done", "insufficient_funds", "insufficient_role", "illegal_transition", "validation_failed"],
      "deposit_not_found",
    ],
    correction: [
      ...["approve", "withdraw", "correction_not_found", "illegal_transition", "second_person_required"],
      "passkey_unavailable",
    ],
    submit: ["done", "nothing owed", "insufficient_role", "passkey_unavailable", "passkey_required"],
    paid: ["done", "payout_not_found", "illegal_transition"],
    fail: ["done", "payout_not_found", "illegal_transition"],
    look: ["credited", "unassigned", "died"],
    assign: ["done", "transfer_not_found"],
    payouts: [
      ...["above_payout_limit", "above_day_limit", "failed", "token_refuses", "not_an_address"],
      ...["none, timeout", "none, no_gas", "died"],
    ],
    release: [...["done", "nothing owed", "insufficient_role", "passkey_required", "version_conflict"]],
    reorganise: ["deep", "within the confirmations"],
  };
  const familiar = [
    ...ended.map((state) => `ended ${state}`),
    ...["active", "paused", "killed"].map((status) => `agent ended ${status}`),
    ...["submitted", "paid", "failed"].map((status) => `payout ended ${status}`),
    ...Object.entries(outcomes).flatMap(([verb, names]) => names.map((name) => `${verb}: ${name}`)),
  ];
  expect(familiar.filter((outcome) => !counts.has(outcome))).toEqual([]);
});
