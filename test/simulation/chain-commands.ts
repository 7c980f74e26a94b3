import fc from "fast-check";

/** What happens on the chain of a treasury, and around the jobs that work with it. */

/** Where a job's process dies: at the n-th thing that it waits for. */
const dies = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  {
    weight: 1,
    arbitrary: fc.record({ at: fc.integer({ min: 1, max: 30 }), when: fc.constantFrom("before", "after") }),
  },
);

/** Blocks that are made before a job runs. */
const mined = fc.record({
  blocks: fc.constantFrom(0, 1, 3, 4),
  /** The token takes no transfer in these blocks, though it seemed to before. */
  reverts: fc.constantFrom(false, false, true),
});

const chainCommands = {
  /** A person opens a warrant and releases it: so much more is owed. */
  owe: fc.record({
    do: fc.constant("owe"),
    payee: fc.constantFrom("acme", "acme", "acme labs", "acme labs", "other"),
    amount: fc.constantFrom(50n, 100n, 200n, 250n, 301n),
  }),
  /** Somebody sends the treasury some of its token. */
  transfer: fc.record({
    do: fc.constant("transfer"),
    from: fc.constantFrom("registered", "stranger"),
    amount: fc.constantFrom(1n, 100n, 700n),
  }),
  /** Whether what the first of them sends is the organisation's. */
  sender: fc.record({ do: fc.constant("sender"), registered: fc.constantFrom(true, true, false) }),
  look: fc.record({ do: fc.constant("look"), mined, dies }),
  assign: fc.record({ do: fc.constant("assign"), transfer: fc.nat({ max: 1_000 }) }),
  payouts: fc.record({ do: fc.constant("payouts"), mined, dies }),
  mine: fc.record({
    do: fc.constant("mine"),
    blocks: fc.constantFrom(1, 3, 6),
    /** The node has lost what waits. */
    forgets: fc.boolean(),
    /** What it costs from now on: more than a transaction that waits pays. */
    fees: fc.constantFrom(100n, 300n),
  }),
  reorganise: fc.record({
    do: fc.constant("reorganise"),
    blocks: fc.constantFrom(1, 2, 3, 4, 5, 5),
    /** After how many blocks what was taken out is in one again. */
    empty: fc.constantFrom(0, 1, 2, 3),
    loses: fc.constantFrom(false, false, true),
  }),
  /** What is wrong with the chain from now on. */
  node: fc.record({
    do: fc.constant("node"),
    is: fc.constantFrom("well", "well", "well", "well", "away", "without_gas"),
    token: fc.constantFrom("plain", "plain", "refuses"),
  }),
  release: fc.record({
    do: fc.constant("release"),
    by: fc.constantFrom("admin", "admin", "admin", "owner", "operator"),
    payee: fc.constantFrom(null, null, null, "acme", "acme labs"),
    signs: fc.constantFrom("this", "this", "this", "this", "nothing", "another", "another", "not_as_seen"),
  }),
  /** Both jobs begin anew, and know nothing but the ledger. */
  restart: fc.record({ do: fc.constant("restart") }),
};

type ChainCommands = {
  [K in keyof typeof chainCommands]: (typeof chainCommands)[K] extends fc.Arbitrary<infer C> ? C : never;
};
export type ChainCommand = ChainCommands[keyof ChainCommands];
export type Dies = Extract<ChainCommand, { do: "payouts" }>["dies"];

const WEIGHTS: Readonly<Record<keyof ChainCommands, number>> = {
  owe: 12,
  transfer: 8,
  sender: 1,
  look: 12,
  assign: 5,
  payouts: 14,
  mine: 6,
  reorganise: 7,
  node: 6,
  release: 7,
  restart: 1,
};

export const isChain = (command: { readonly do: string }): command is ChainCommand =>
  command.do in chainCommands;

export const chainCommand = fc.oneof(
  ...Object.entries(chainCommands).map(([name, arbitrary]) => ({
    weight: WEIGHTS[name as keyof ChainCommands],
    arbitrary: arbitrary as fc.Arbitrary<unknown>,
  })),
) as fc.Arbitrary<ChainCommand>;

/** The most of one payout, and of 24 hours. */
export const walletLimits = fc.constantFrom(
  { payout: 400n, day: 400n },
  { payout: 400n, day: 400n },
  { payout: 10_000n, day: 400n },
  { payout: 300n, day: 10_000n },
  { payout: 10_000n, day: 10_000n },
  { payout: 0n, day: 0n },
);
