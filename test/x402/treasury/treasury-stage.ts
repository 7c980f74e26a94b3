import { expect } from "bun:test";
import { MINUTE_MS } from "../../../src/core/time.ts";
import { parseTreasury, type Treasury } from "../../../src/core/treasury.ts";
import { type ChainPayoutsJob, chainPayoutsJob } from "../../../src/jobs/chain-payouts.ts";
import { type DepositsJob, depositsJob } from "../../../src/jobs/deposits.ts";
import { createChainAsker } from "../../../src/platform/ask-chain.ts";
import { createEvmTreasury } from "../../../src/platform/evm-treasury.ts";
import { addressOf } from "../../../src/platform/evm-wallet.ts";
import { createTreasuryChain } from "../../../src/platform/treasury-chain.ts";
import type { Context } from "../../../src/services/context.ts";
import { keepRailStates } from "../../../src/services/rails/states.ts";
import type { Json } from "../../support/client.ts";
import { type CommandLine, createCommandLine } from "../../support/command-line.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { submitSigned } from "../../support/passkeys.ts";
import { createCaller, createStage, must, open, type Stage, settle, warrantIn } from "../../support/stage.ts";
import { CHAIN_ID, type Chain, NETWORK_V2 } from "../chain.ts";
import type { Node } from "../node.ts";
import type { FaultyToken } from "./faulty-token.ts";

export const CONFIRMATIONS = 3;
export const TREASURY_KEY = `0x${"42".repeat(32)}` as const;
export const TREASURY = addressOf(TREASURY_KEY);
/** More than any test pays. */
const PLENTY = 10n ** 15n;
const ETHER = 10n ** 18n;
/** In wei for each unit of gas. */
const FEE_MAX = 10n ** 12n;
/** Long enough for whatever a job waits for. */
export const STEP_MS = 20 * MINUTE_MS;
const ROUNDS_MAX = 200;
/** A node that says nothing must not hold up a test. */
const IMPATIENT = { timeoutMs: 150, retries: 0 } as const;

/** A ledger whose money is on a chain, with its jobs; `pay` and `watch` run them once, long after they ran before. */
export type TreasuryStage = {
  readonly ctx: TestContext;
  readonly stage: Stage;
  readonly treasury: Treasury;
  readonly commands: CommandLine;
  /** What the jobs have reported, in order. */
  readonly reported: readonly string[];
  /** Looks for deposits. */
  watch(): Promise<void>;
  /** Begins payouts, and looks after those that are under way. */
  pay(): Promise<void>;
  /** Pays, and mines, until it is so; by default, until nothing is owed or under way. */
  payUntil(isSo?: () => Promise<boolean>): Promise<void>;
  /** The jobs know nothing any more but the ledger. */
  restart(): void;
  /** What `holdfast deposits list --json` has. */
  deposits(): Promise<readonly Json[]>;
  /** Releases so much to a payee. */
  release(payee: string, amount: bigint): Promise<void>;
  /** Releases so much to a payee, and gives the treasury as much. */
  owe(payee: string, amount: bigint): Promise<void>;
  /** What `holdfast payouts list --json` has of a status; without one, what is owed. */
  payouts(status?: string): Promise<readonly Json[]>;
  /** A person submits all that is owed. */
  submit(): Promise<void>;
  /** The operator has compared: payouts go on. */
  resume(): Promise<void>;
  /** A person looks at the chain for each payout that needs one, marks it, and lets payouts go on. */
  decide(): Promise<void>;
  /** Why each payee is not paid yet, as the lists of what is owed and of what is under way show it. */
  reasons(): Promise<readonly string[]>;
  /** Expects that nobody has more than what was released to them, and each payout was paid once at most. */
  expectNothingTwice(): Promise<void>;
  /** Expects that each payee has exactly what was released, on the chain and in the ledger. */
  expectAllPaid(): Promise<void>;
  /** Closes the ledger, which must have no disagreement. */
  close(): Promise<void>;
};

type TreasuryJobs = { readonly deposits: DepositsJob; readonly payouts: ChainPayoutsJob };

/** The jobs of a treasury, as a server has them, by another clock. */
export function treasuryJobs(
  ctx: Context,
  {
    treasury,
    url,
    monotonicNow,
    report,
  }: {
    readonly treasury: Treasury;
    readonly url: string;
    readonly monotonicNow: () => number;
    readonly report: (what: string) => void;
  },
): TreasuryJobs {
  const clock = { monotonicNow, random: () => 0 };
  const asker = createChainAsker(new Map([[CHAIN_ID, url]]), IMPATIENT);
  const watching = {
    ...{ treasury, span: 1_000, onJudged: () => {} },
    chain: createTreasuryChain(asker, treasury, CONFIRMATIONS),
  };
  const paying = {
    wallet: createEvmTreasury({ chainId: CHAIN_ID, url, key: TREASURY_KEY }, CONFIRMATIONS, IMPATIENT),
    rules: { confirmations: CONFIRMATIONS, feeMax: FEE_MAX },
    tokens: [treasury],
    onTakenOut: () => report("taken out"),
  };
  return {
    deposits: depositsJob(ctx, {
      ...clock,
      watching: () => watching,
      onTrouble: (trouble) => report(trouble?.outcome ?? "goes on"),
      onGone: ({ count, amount }) => report(`${count} gone: ${amount}`),
    }),
    payouts: chainPayoutsJob(ctx, {
      ...clock,
      paying: () => paying,
      everyMs: MINUTE_MS,
      onTrouble: (trouble) => report(trouble?.code ?? "goes on"),
      onAlarm: report,
    }),
  };
}

/** The settings of the treasury, as a server reads them. */
export const treasurySetting = (token: FaultyToken, max = PLENTY): string =>
  `${NETWORK_V2}/${token.address}=USDC:${max}:${max}`;

/** A ledger of one organisation, whose treasury has gas and no money. */
export async function openTreasuryStage(
  chain: Chain,
  token: FaultyToken,
  node: Node,
  funds = "0",
): Promise<TreasuryStage> {
  const tokens = parseTreasury("sandbox")(treasurySetting(token));
  if ("problem" in tokens || !tokens[0]) throw new Error("the treasury was not read");
  const treasury: Treasury = { ...tokens[0], address: TREASURY };
  await chain.ask("hardhat_setBalance", [TREASURY, `0x${ETHER.toString(16)}`]);
  const ctx = createTestContext({ treasuries: [treasury] });
  const stage = await createStage(ctx, { mode: "sandbox", funds });
  const caller = await createCaller(stage);
  const commands = createCommandLine(ctx);
  const operator = operatorOf(chain, commands, stage.organisationId);
  const reported: string[] = [];
  let time = 0;
  await keepRailStates(ctx);
  const newJobs = () =>
    treasuryJobs(ctx, {
      treasury,
      url: node.url,
      monotonicNow: () => time,
      report: (what) => reported.push(what),
    });
  let jobs = newJobs();

  /** What was released to each payee. */
  const released = new Map<string, bigint>();
  const release = async (payee: string, amount: bigint): Promise<void> => {
    const { id } = warrantIn(await open(stage, caller, { payee, amount: `${amount}` }));
    must(await settle(stage, stage.operator, id, "release"));
    released.set(payee, (released.get(payee) ?? 0n) + amount);
  };
  const pay = async (): Promise<void> => {
    time += STEP_MS;
    await jobs.payouts.run();
  };
  const isDone = async () => {
    const totals = ctx.reader.payees.totals({ organisationId: stage.organisationId, mode: "sandbox" });
    return totals.every(({ payable, submitted }) => payable + submitted === 0n);
  };
  return {
    ...{ ctx, stage, treasury, commands, reported, ...operator },
    async submit() {
      await submitSigned(ctx, stage.admin);
    },
    ...expectationsOf(token, released, operator.payouts),
    async watch() {
      time += STEP_MS;
      await jobs.deposits.run();
    },
    pay,
    async payUntil(isSo = isDone) {
      for (let round = 0; round < ROUNDS_MAX; round++) {
        if (await isSo()) return;
        await pay();
        await chain.mine(1);
      }
      throw new Error(`it does not end: ${JSON.stringify([await operator.payouts("submitted"), reported])}`);
    },
    restart() {
      jobs = newJobs();
    },
    release,
    async owe(payee, amount) {
      await release(payee, amount);
      await token.mint(TREASURY, amount);
    },
    close: () => ctx.close(),
  };
}

type Operator = Pick<TreasuryStage, "deposits" | "payouts" | "resume" | "decide" | "reasons">;

/** What the operator sees and does on the command line. */
function operatorOf(chain: Chain, commands: CommandLine, organisationId: string): Operator {
  const account = ["--organisation", organisationId, "--mode", "sandbox"];
  const list = async (status = "owed"): Promise<Json[]> => {
    const found: Json[] = [];
    for (let after: string[] = []; ; ) {
      const args = ["payouts", "list", ...account, "--status", status, "--limit", "1000", ...after];
      const { data, next_cursor: next } = (await commands.json(...args)) as Json;
      found.push(...data);
      if (next === null) return found;
      after = ["--starting-after", next];
    }
  };
  const resume = async (): Promise<void> => {
    await commands.json("treasuries", "resume", "--mode", "sandbox", "--asset", "USDC");
  };
  return {
    async deposits() {
      const { data } = (await commands.json("deposits", "list", ...account)) as Json;
      return data;
    },
    payouts: list,
    resume,
    async decide() {
      const undecided = (await list("submitted")).filter(({ waits_for: why }) => why?.code === "decision");
      for (const { id, transaction } of undecided) {
        const receipt = await chain.ask("eth_getTransactionReceipt", [transaction.split(":").at(-1)]);
        if (receipt === null) await commands.json("payouts", "fail", id, "--reason", "not on the chain");
        else await commands.json("payouts", "mark-paid", id, "--reference", transaction);
      }
      if (undecided.length > 0) await resume();
    },
    async reasons() {
      const waiting = [...(await list("owed")), ...(await list("submitted"))];
      return waiting.map(({ waits_for: waitsFor }) => waitsFor?.message ?? "no reason is shown");
    },
  };
}

type Expectations = Pick<TreasuryStage, "expectNothingTwice" | "expectAllPaid">;

function expectationsOf(
  token: FaultyToken,
  released: ReadonlyMap<string, bigint>,
  list: TreasuryStage["payouts"],
): Expectations {
  return {
    async expectNothingTwice() {
      const payouts = [...(await list("paid")), ...(await list("submitted"))];
      for (const [payee, amounts] of await arrived(token)) {
        expect([payee, sum(amounts) <= (released.get(payee) ?? 0n)]).toEqual([payee, true]);
        const toPayee = payouts.filter((one) => one.payee === payee);
        expect([payee, amounts.length <= toPayee.length]).toEqual([payee, true]);
      }
    },
    async expectAllPaid() {
      expect([await list("owed"), await list("submitted")]).toEqual([[], []]);
      const [transfers, paid] = [await arrived(token), await list("paid")];
      for (const [payee, amount] of released) {
        const amounts = paid.filter((one) => one.payee === payee).map((one) => BigInt(one.amount));
        expect([payee, sum(transfers.get(payee)), inOrder(amounts)]).toEqual([
          ...[payee, amount, inOrder(transfers.get(payee))],
        ]);
        expect([payee, await token.balanceOf(payee)]).toEqual([payee, amount]);
      }
      expect([...transfers.keys()].filter((payee) => !released.has(payee))).toEqual([]);
      expect(await token.balanceOf(TREASURY)).toBe(0n);
      expect(new Set(paid.map(({ reference }) => reference)).size).toBe(paid.length);
    },
  };
}

/** What each payee has from the treasury, transfer by transfer. */
async function arrived(token: FaultyToken): Promise<Map<string, readonly bigint[]>> {
  const ofPayees = Map.groupBy(await token.sentBy(TREASURY), ({ to }) => to.toLowerCase());
  return new Map([...ofPayees].map(([payee, moved]) => [payee, moved.map(({ value }) => value)]));
}

const sum = (amounts: readonly bigint[] = []): bigint => amounts.reduce((all, one) => all + one, 0n);
const inOrder = (amounts: readonly bigint[] = []): bigint[] =>
  amounts.toSorted((one, other) => Number(one - other));
