import { addresseeIn, amountIn } from "../../src/core/evm-address.ts";
import { addressOf, type DecodedTransaction, decodeTransaction } from "../../src/platform/evm-wallet.ts";
import {
  type Asked,
  type ModelToken,
  NodeError,
  startModelToken,
  TOKEN,
  type Transfer,
} from "../support/model-token.ts";
import { type Reaction, startNode } from "../x402/node.ts";
import type { Random } from "./random.ts";

/**
 * The made-up chain of the sandbox's treasury: a token, a wallet, and who pays in to it. It makes its blocks by itself, and takes some
 * of them out again; its fees rise and fall. Its node answers late or never, loses answers, does what it is asked twice, and is away for
 * a while.
 */

const CHAIN_ID = 11_155_111;
/** No reorganisation takes out a block that is confirmed: that would be an alarm, and not the rule. */
const CONFIRMATIONS = 12;
const KEY = `0x${"33".repeat(32)}` as const;
const WALLET = addressOf(KEY);
const OWN = WALLET.toLowerCase();
/** More than is owed in the sandbox, whatever comes in and out: it stays solvent. */
const ENDOWED = 10n ** 14n;
/** No limit keeps a payout back. */
const PLENTY = 10n ** 15n;
const COIN = 10n ** 24n;
/** The code by which a node refuses a transaction. */
const REFUSED = -32_000;
const GWEI = 10n ** 9n;
const BASE_FEES_MAX = 4;
const BLOCK_MS = 150;
const SLOW_MS = 50;
const LATE_MS = 600;
const AWAY_MS_MAX = 1_800;
/** How often it says nothing of a transaction that it is sent, whether it takes it or not: whoever asks gives up after 5 s. */
const SILENT = 0.03;
const AMOUNT_MAX = 1_000;
const PAYEES = 12;

/** Who pays in. The strangers are nobody's. */
const SENDERS = [`0x${"a1".repeat(20)}`, `0x${"a2".repeat(20)}`] as const;
export const STRANGER = `0x${"5e".repeat(20)}`;

const payeeOf = (number: number): string => `0x${(0xd000 + number).toString(16).padStart(40, "0")}`;

/** Whom the wallet pays, and payees that look as if it did. */
export const PAYEES_ON_CHAIN: readonly string[] = [
  `eip155:${CHAIN_ID}:${payeeOf(0)}`,
  ...Array.from({ length: PAYEES }, (_, index) => payeeOf(1 + index)),
];
const NOT_PAYABLE = [`eip155:1:${payeeOf(1)}`, `0xAb${"cd".repeat(19)}`];

/** The address that a payee is paid at. */
export const addressIn = (payee: string): string => payee.slice(-42);

/** Whether the wallet has paid it; else it came in. */
export const isWallets = ({ from }: Pick<Transfer, "from">): boolean => from === OWN;

/** What the ledger calls a transaction of the chain. */
export const transactionOf = (hash: string): string => `eip155:${CHAIN_ID}:${hash}`;

/** Questions at which a server is killed. */
const HELD_AT = [
  ...(["eth_sendRawTransaction", "eth_sendRawTransaction", "eth_sendRawTransaction"] as const),
  ...(["eth_sendRawTransaction", "eth_sendRawTransaction", "eth_sendRawTransaction"] as const),
  ...(["eth_estimateGas", "eth_getTransactionReceipt", "eth_getLogs", "eth_call"] as const),
] as const;
const HELD_COUNT_MAX = 2;

/** What there is to know of the chain at a moment. */
export type Seen = {
  /** The hashes of all that the node was ever sent. */
  readonly sent: readonly string[];
  /** What is in blocks, in their order. */
  readonly transfers: readonly (Transfer & { readonly block: number })[];
  /** The newest confirmed block. */
  readonly confirmed: number;
};

export type TreasuryChain = {
  /** Settings of a server that has its treasury here. */
  readonly settings: Readonly<Record<string, string>>;
  /** The endpoint, as one of `HOLDFAST_EVM_RPC`. */
  readonly endpoint: string;
  /** The addresses whose transfers are the organisation's. */
  readonly senders: readonly string[];
  readonly payees: readonly string[];
  seen(): Seen;
  balance(): bigint;
  /** Holds the node back at one of its next questions, before or after it does what it is asked, until it may go on. */
  hold(): { readonly reached: Promise<void>; goOn(): void };
  /** From now on nobody pays in, all works, and blocks stay. */
  calm(): void;
  readonly count: () => { readonly takenOut: number; readonly held: number; readonly silent: number };
  stop(): Promise<void>;
};

/** Blocks that come by themselves, and what waits for them. */
function createMiner(model: ModelToken, random: Random) {
  const sent = new Set<string>();
  /** Payments that the node has, by their hashes. Once one is in a block, others of its nonce are of no use. */
  const waiting = new Map<string, DecodedTransaction>();
  const coming: (readonly Transfer[])[] = [];
  let baseFee = GWEI;
  let takenOut = 0;
  const paidSoFar = (): number => model.transfers().filter(isWallets).length;

  /** What the next block takes of what waits: of each nonce one that pays enough, any of its signings. */
  function payments(): (readonly Transfer[])[] {
    const taken: (readonly Transfer[])[] = [];
    for (let nonce = paidSoFar(); random.chance(0.9); nonce++) {
      const fitting = [...waiting.values()].filter((one) => one.nonce === nonce && one.fees.max >= baseFee);
      const one = fitting[random.below(fitting.length)];
      if (one === undefined) break;
      taken.push([{ hash: one.hash, from: OWN, to: addresseeIn(one.data), amount: amountIn(one.data) }]);
    }
    return taken;
  }

  function mine(): void {
    if (random.chance(0.1)) baseFee = GWEI * BigInt(1 + random.below(BASE_FEES_MAX));
    model.mine([...coming.splice(0), ...payments()]);
  }

  return {
    sent,
    mine,
    baseFee: () => baseFee,
    takenOut: () => takenOut,
    /** As a node does: it takes what may still get into a block, and says so of what it has. */
    async take(raw: string): Promise<string> {
      const payment = await decodeTransaction(raw);
      if (payment?.chainId !== CHAIN_ID || payment.wallet !== WALLET || payment.to.toLowerCase() !== TOKEN)
        throw new Error(`no payment of the treasury: ${raw}`);
      const { hash, nonce } = payment;
      sent.add(hash);
      if (waiting.has(hash) || model.transfers().some((one) => one.hash === hash))
        throw new NodeError(REFUSED, "already known");
      if (nonce < paidSoFar()) throw new NodeError(REFUSED, "nonce too low");
      waiting.set(hash, payment);
      return hash;
    },
    payIn(): void {
      const from = random.pick([...SENDERS, STRANGER]);
      const transfers = Array.from({ length: random.chance(0.1) ? 2 : 1 }, () => ({
        ...{ from, to: OWN, amount: 1n + BigInt(random.below(AMOUNT_MAX)) },
      }));
      coming.push(model.transaction(...transfers));
    },
    /** Other blocks come in the place of the newest ones. What was in those waits again, or is forgotten. */
    reorganise(): void {
      const blocks = 1 + random.below(CONFIRMATIONS - 1);
      const gone = model.takeOut(blocks).filter(([first]) => first && !isWallets(first));
      coming.push(...gone.filter(() => random.chance(0.5)));
      if (random.chance(0.5)) waiting.clear();
      takenOut += 1;
      for (let made = 0; made <= blocks; made++) mine();
    },
  };
}

/** What its node does wrong. */
function createFaults(random: Random) {
  let awayUntil = 0;
  let held = 0;
  let silent = 0;
  let holding: Holding | null = null;
  return {
    count: () => ({ held, silent }),
    hold() {
      holding = createHolding(random);
      return holding;
    },
    /** Nobody reaches it for a while. */
    goAway() {
      awayUntil = performance.now() + random.below(AWAY_MS_MAX);
    },
    async reactTo(method: string, isCalm: boolean): Promise<Reaction> {
      await Bun.sleep(random.below(random.chance(0.02) ? LATE_MS : SLOW_MS));
      const reached = holding?.meets(method) ?? null;
      if (reached !== null) {
        held += 1;
        if (random.chance(0.5)) return { forwardThen: reached };
        await reached();
        // It may take late what nobody waits for any more.
        return random.chance(0.5) ? "forward" : "dropped";
      }
      if (isCalm) return "forward";
      if (method === "eth_sendRawTransaction" && random.chance(SILENT)) {
        silent += 1;
        return random.chance(0.5) ? "forward, never" : "never";
      }
      if (performance.now() < awayUntil || random.chance(0.02)) return "dropped";
      if (random.chance(0.02)) return "forward, dropped";
      return random.chance(0.03) ? "forward twice" : "forward";
    },
  };
}

export async function startTreasuryChain(random: Random): Promise<TreasuryChain> {
  const model = startModelToken(CHAIN_ID, { [OWN]: ENDOWED });
  const node = await startNode(model);
  const miner = createMiner(model, random);
  const faults = createFaults(random);
  let isCalm = false;

  model.mine([], CONFIRMATIONS);
  model.intercept = (asked) => answerTo(asked, miner.baseFee(), miner.take);
  node.react(({ method }) => {
    // Between any two questions.
    if (!isCalm && random.chance(0.03)) miner.reorganise();
    return faults.reactTo(method, isCalm);
  });
  const ticking = setInterval(() => {
    if (!isCalm && random.chance(0.4)) miner.payIn();
    if (random.chance(0.02)) faults.goAway();
    if (!isCalm && random.chance(0.06)) miner.reorganise();
    else miner.mine();
  }, BLOCK_MS);
  return {
    endpoint: `eip155:${CHAIN_ID}=${node.url}`,
    settings: {
      HOLDFAST_TREASURY_SANDBOX: `eip155:${CHAIN_ID}/${TOKEN}=USDC:${PLENTY}:${PLENTY}`,
      HOLDFAST_TREASURY_SANDBOX_KEY: KEY,
      HOLDFAST_TREASURY_CONFIRMATIONS: String(CONFIRMATIONS),
      HOLDFAST_PAYOUT_MINUTES: "1",
    },
    senders: SENDERS,
    payees: [WALLET, ...PAYEES_ON_CHAIN, ...NOT_PAYABLE],
    seen: () => ({
      sent: [...miner.sent],
      transfers: model.transfers(),
      confirmed: model.newest() - CONFIRMATIONS + 1,
    }),
    balance: () => model.balanceOf(OWN),
    hold: faults.hold,
    calm() {
      isCalm = true;
    },
    count: () => ({ takenOut: miner.takenOut(), ...faults.count() }),
    async stop() {
      clearInterval(ticking);
      await Promise.all([node.close(), model.stop()]);
    },
  };
}

/** What the wallet asks besides what every holder of the token does. */
function answerTo({ method, params, answer }: Asked, baseFee: bigint, take: (raw: string) => unknown) {
  const hex = (value: bigint): string => `0x${value.toString(16)}`;
  switch (method) {
    case "eth_getBlockByNumber": {
      const block = answer();
      return block === null ? null : { ...(block as object), baseFeePerGas: hex(baseFee) };
    }
    case "eth_maxPriorityFeePerGas":
      return hex(GWEI);
    // Asked where the newest block got lost on its way.
    case "eth_gasPrice":
      return hex(baseFee + GWEI);
    case "eth_estimateGas":
      return hex(60_000n);
    case "eth_getBalance":
      return hex(COIN);
    case "eth_sendRawTransaction":
      return take(String(params[0]));
    case "eth_call": {
      // A transfer is played before it is sent: it works, and says so.
      const isTransfer = (params[0] as { readonly data: string }).data.length > 100;
      return isTransfer ? `0x${"1".padStart(64, "0")}` : answer();
    }
    default:
      return answer();
  }
}

type Holding = {
  readonly reached: Promise<void>;
  goOn(): void;
  /** What the node waits for now, where this is the question at which it is held. */
  meets(method: string): (() => Promise<void>) | null;
};

function createHolding(random: Random): Holding {
  const at = random.pick(HELD_AT);
  let left = 1 + random.below(HELD_COUNT_MAX);
  const reached = Promise.withResolvers<void>();
  const goesOn = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    goOn() {
      left = 0;
      goesOn.resolve();
    },
    meets(method) {
      if (left === 0 || method !== at || --left > 0) return null;
      return () => {
        reached.resolve();
        return goesOn.promise;
      };
    },
  };
}
