import { expect } from "bun:test";
import type { Mode } from "../../src/core/roles.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/core/time.ts";
import type { PayoutLimits, Treasury } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { type ChainPayoutsJob, chainPayoutsJob } from "../../src/jobs/chain-payouts.ts";
import type { EvmTreasury } from "../../src/platform/evm-treasury.ts";
import { decodeTransaction } from "../../src/platform/evm-wallet.ts";
import type { PayoutResource } from "../../src/resources/payout.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { listPayouts } from "../../src/services/admin/payouts.ts";
import { auditTransactions } from "../../src/services/chain/audit.ts";
import { keepRailStates } from "../../src/services/rails/states.ts";
import type { Store } from "../../src/store/store.ts";
import { createTestContext, type TestContext } from "./context.ts";
import { createModelTreasury, type ModelTreasury } from "./model-treasury.ts";
import { createStage, must, open, type Stage, settle, warrantIn } from "./stage.ts";

/** An organisation, of the sandbox where nothing else is said, whose payees are paid on a chain in memory. */

export const CONFIRMATIONS = 3;
export const STEP_MS = 5 * SECOND_MS;
export const PAYOUT_MS = 10 * MINUTE_MS;
export const TOKEN = `0x${"ab".repeat(20)}`;
const addressOf = (byte: string) => `0x${byte.repeat(20)}`;
export const ALICE = addressOf("a1");
export const BOB = addressOf("b2");
export const CAROL = addressOf("c3");

export type Paying = {
  ctx: TestContext;
  stage: Stage;
  readonly chain: ModelTreasury;
  /** What the job has reported, in order. */
  readonly reported: string[];
  /** The most that is paid for gas. */
  feeMax: bigint;
  job: ChainPayoutsJob;
  /** As after a restart: the job knows nothing but the ledger. */
  restart(): void;
  /** The same, and the ledger was closed and opened again. */
  reopen(): Promise<void>;
  /** What the job works with; a test may put something between. */
  wrapped: { readonly store: Store; readonly wallet: EvmTreasury } | null;
  /** Lets time go by, also while the job runs. */
  wait(ms: number): void;
  step(waitMs?: number): Promise<void>;
  /** Sends what is owed, and has it confirmed. */
  payOut(): Promise<void>;
  owe(payee: string, amount?: string, of?: Stage): Promise<void>;
  list(status: PayoutResource["status"], of?: Stage): Promise<readonly PayoutResource[]>;
  /** Who waits for what. */
  waits(status?: "owed" | "submitted", of?: Stage): Promise<[payee: string, code: string | undefined][]>;
  /** Audits the ledger, and closes it. */
  close(): Promise<void>;
};

type Options = {
  readonly folder?: string;
  readonly chain?: ModelTreasury;
  readonly limits?: PayoutLimits;
  readonly mode?: Mode;
};

const CHAIN_IDS = { sandbox: 84_532, live: 8_453 } as const;

export const treasuryOf = (
  { wallet: { address } }: ModelTreasury,
  limits: PayoutLimits,
  mode: Mode = "sandbox",
): Treasury => {
  const rest = { token: TOKEN, asset: "USDC", address, limits };
  return mode === "sandbox"
    ? { mode, chainId: chainOfMode(mode, CHAIN_IDS[mode])!, ...rest }
    : { mode, chainId: chainOfMode(mode, CHAIN_IDS[mode])!, ...rest };
};

export async function startPaying({
  folder,
  mode = "sandbox",
  chain = createModelTreasury(CONFIRMATIONS, { chainId: CHAIN_IDS[mode] }),
  limits = { payoutMax: 1_000n, dayMax: 100_000n },
}: Options = {}): Promise<Paying> {
  const overrides = {
    chain: { anchors: false, decode: decodeTransaction },
    treasuries: [treasuryOf(chain, limits, mode)],
  };
  const ctx = createTestContext(overrides, folder);
  const stage = await createStage(ctx, { mode });
  await keepRailStates(ctx);
  let time = 1_000_000;
  const reported: string[] = [];
  const newJob = () =>
    chainPayoutsJob(paying.wrapped ? { ...paying.ctx, store: paying.wrapped.store } : paying.ctx, {
      paying: () => ({
        wallet: paying.wrapped?.wallet ?? chain.wallet,
        rules: { confirmations: CONFIRMATIONS, feeMax: paying.feeMax },
        tokens: paying.ctx.treasuries,
        onTakenOut: ({ nonce }) => reported.push(`${nonce} was taken out`),
      }),
      everyMs: PAYOUT_MS,
      monotonicNow: () => time,
      random: () => 0,
      onTrouble: (trouble) => reported.push(trouble?.code ?? "goes on"),
      onAlarm: (what) => reported.push(what),
    });
  const paying: Paying = {
    ...{ ctx, stage, chain, reported, feeMax: 1_000n, job: undefined as never, wrapped: null },
    restart() {
      paying.job = newJob();
    },
    async reopen() {
      await paying.ctx.store.close();
      paying.ctx = createTestContext(overrides, paying.ctx.folder);
      paying.stage = { ...paying.stage, ctx: paying.ctx };
      paying.wrapped = null;
      paying.restart();
    },
    wait(ms) {
      time += ms;
    },
    async step(waitMs = STEP_MS) {
      time += waitMs;
      await paying.job.run();
    },
    async payOut() {
      await paying.step(PAYOUT_MS);
      chain.mine(CONFIRMATIONS);
      await paying.step();
    },
    async owe(payee, amount = "100", of = paying.stage) {
      const { id } = warrantIn(await open(of, of.operator, { payee, amount }));
      must(await settle(of, of.operator, id, "release"));
    },
    list: async (status, { organisationId, mode } = paying.stage) =>
      must(await listPayouts(paying.ctx, MACHINE, { organisation_id: organisationId, mode, status })).data,
    waits: async (status = "owed", of = paying.stage) =>
      (await paying.list(status, of)).map(({ payee, waits_for: wait }) => [payee, wait?.code]),
    async close() {
      expect(await auditTransactions(paying.ctx)).toEqual([]);
      await paying.ctx.close();
    },
  };
  paying.restart();
  return paying;
}
