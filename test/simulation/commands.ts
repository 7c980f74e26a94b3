import fc from "fast-check";
import { type ChainCommand, chainCommand, walletLimits } from "./chain-commands.ts";
import type { Rules } from "./plain-model.ts";
import type { Setting } from "./service.ts";

/** The commands of random histories. An index picks one of the things that exist when the command runs. */

const index = fc.nat({ max: 1_000 });
/** An index in one of `times` cases, else null. */
const seldom = (times: number): fc.Arbitrary<number | null> =>
  fc.oneof({ weight: times - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: index });
const who = fc.oneof(
  { weight: 6, arbitrary: fc.record({ key: index }) },
  { weight: 6, arbitrary: fc.record({ role: fc.constantFrom("operator", "admin", "owner") }) },
  { weight: 1, arbitrary: fc.record({ role: fc.constant("viewer") }) },
);
/** A fresh key, or one that was used before. */
const reuse = seldom(12);
const ifMatch = fc.constantFrom(...Array(10).fill(null), "current", "current", "stale");
/** Who decides: a person, and sometimes a key, which may not. */
const decider = fc.oneof(
  { weight: 9, arbitrary: fc.record({ role: fc.constantFrom("operator", "admin", "owner") }) },
  { weight: 1, arbitrary: who },
);
const bps = fc.constantFrom(1, 99, 3_333, 5_000, 9_999);
const code = fc.constantFrom("path_not_found", "value_mismatch", "data_stale");
const minutes = fc.constantFrom(...Array(12).fill(600), 60, 60, 5, 5, 1, 0);

const band = fc.record({
  minScore: fc.constantFrom(0, 0.25, 0.5, 0.75, 1),
  outcome: fc.constantFrom("release", "partial_release", "escalate", "refund"),
  releasedBps: bps,
});
const rules = fc.record(
  {
    bands: fc
      .tuple(fc.array(band, { maxLength: 4 }), band)
      .map(([others, floor]) => [...others, { ...floor, minScore: 0 }])
      .map((bands) =>
        bands.map(({ releasedBps, ...rest }) =>
          rest.outcome === "partial_release" ? { ...rest, releasedBps } : rest,
        ),
      ),
    maxAmount: fc.constantFrom("100", "1000"),
    alwaysRefund: fc.constantFrom(["data_stale"], ["data_stale", "value_mismatch"]),
    alwaysEscalate: fc.constantFrom(["value_mismatch"]),
  },
  { requiredKeys: ["bands"] },
) as fc.Arbitrary<Rules>;

/** The limits of a session besides its ceiling. Each one is often not set. */
const limits = fc.record({
  perWarrant: fc.constantFrom(null, null, 100n, 250n),
  hourly: fc.constantFrom(null, 200n, 350n, 2n ** 63n - 1n),
  daily: fc.constantFrom(null, 300n, 700n),
  payees: fc.constantFrom(null, null, ["acme"], ["ac*", "x"], ["other"]),
  origins: fc.constantFrom(
    null,
    null,
    ["http://source.example"],
    ["http://source.example:*"],
    ...Array<readonly string[]>(4).fill(["http://x.example"]),
  ),
});

const asset = fc.constantFrom("USDC", "USDC", "USDC", "USDC", "USDC", "EURX");
const payee = fc.constantFrom("acme", "acme", "acme", "acme labs", "other");
const admin = fc.constantFrom(
  ...Array<"machine">(3).fill("machine"),
  ...(["admin", "admin", "owner", "owner", "operator"] as const),
);

/** Money that comes in and goes out. Few references and reasons, so that the same is said again. */
const moneyCommands = {
  fund: fc.record({
    do: fc.constant("fund"),
    asset: fc.constantFrom("USDC", "EURX"),
    amount: fc.constantFrom(500n, 500n, 2_000n, 2n ** 63n - 1n),
    reference: fc.constantFrom(null, "wire 1", "wire 1", "wire 2"),
  }),
  /** Above how much a person signs with a passkey. Only a history with a treasury has people who have one. */
  threshold: fc.record({ do: fc.constant("threshold"), amount: fc.constantFrom(null, 100n, 250n) }),
  correct: fc.record({
    do: fc.constant("correct"),
    by: admin,
    deposit: index,
    to: fc.constantFrom("nothing", "less", "half", "half", "same", "more"),
  }),
  /** A decision on a correction that waits. */
  correction: fc.record({
    do: fc.constant("correction"),
    by: fc.constantFrom("operator", "admin", "admin", "owner", "owner"),
    correction: index,
    decision: fc.constantFrom("approve", "approve", "withdraw"),
  }),
  submit: fc.record({
    do: fc.constant("submit"),
    by: admin,
    payee: fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 3, arbitrary: payee }),
    asset,
    byHand: fc.constantFrom(false, false, false, true),
  }),
  paid: fc.record({
    do: fc.constant("paid"),
    by: admin,
    payout: index,
    reference: fc.constantFrom("transfer 1", "transfer 1", "transfer 2"),
  }),
  fail: fc.record({
    do: fc.constant("fail"),
    by: admin,
    payout: index,
    reason: fc.constantFrom("no such account", "no such account", "closed"),
    returned: fc.boolean(),
  }),
};

const commands = {
  open: fc.record({
    do: fc.constant("open"),
    who,
    agent: fc.constantFrom(
      ...Array<"own">(14).fill("own"),
      ...Array<"none">(9).fill("none"),
      "other" as const,
      "unknown" as const,
    ),
    amount: fc.constantFrom(1n, 2n, 99n, 100n, 101n, 250n, 250n, 1_000n, 4_000n, 2n ** 63n - 1n),
    asset,
    payee,
    policy: seldom(4),
    minutes,
    reuse,
  }),
  verify: fc.record({
    do: fc.constant("verify"),
    who,
    warrant: index,
    passes: fc.constantFrom(0, 1, 2, 3, 4, 4),
    code,
    ifMatch,
    reuse,
    /** The check stays under way until `finish`. */
    hangs: fc.boolean(),
  }),
  decide: fc.record({
    do: fc.constant("decide"),
    verb: fc.constantFrom("settle", "resolve", "resolve"),
    who: decider,
    warrant: index,
    decision: fc.constantFrom("release", "partial_release", "refund", "dispute", "dispute"),
    bps,
    ifMatch,
    reuse,
  }),
  /** The newest requests are the most likely to be sent again. */
  retry: fc.record({ do: fc.constant("retry"), back: fc.constantFrom(0, 0, 0, 1, 1, 2, 3, 5, 8, 13) }),
  finish: fc.record({ do: fc.constant("finish"), check: index }),
  interrupt: fc.record({ do: fc.constant("interrupt"), check: index }),
  expire: fc.record({ do: fc.constant("expire"), warrant: index }),
  wait: fc.record({ do: fc.constant("wait"), minutes: fc.constantFrom(1, 5, 5, 60, 600) }),
  status: fc.record({
    do: fc.constant("status"),
    agent: index,
    status: fc.constantFrom("active", "active", "paused", "killed"),
  }),
  session: fc.record({
    do: fc.constant("session"),
    agent: index,
    ceiling: fc.constantFrom(0n, 100n, 300n, 10_000n, 10_000n, 10_000n, 10_000n, 2n ** 63n - 1n),
    limit: fc.option(fc.constantFrom(1, 3)),
    budget: fc.constantFrom(1, 1, 2, 5),
    // So that a wait can end exactly at a deadline.
    minutes: fc.constantFrom(5, 600, 600, 600, 6_000),
    limits: fc.option(limits),
  }),
  revoke: fc.record({ do: fc.constant("revoke"), session: index }),
  policy: fc.record({
    do: fc.constant("policy"),
    owner: seldom(2),
    name: fc.constantFrom("a", "b"),
    rules,
  }),
  /** The organisation's kill switch. */
  switch: fc.record({ do: fc.constant("switch"), on: fc.constantFrom(false, false, false, true) }),
  ...moneyCommands,
};
type Commands = {
  [K in keyof typeof commands]: (typeof commands)[K] extends fc.Arbitrary<infer C> ? C : never;
};
export type Command = Commands[keyof Commands];
/** One command, or several that are sent at once, so that they share a commit. */
export type Step = Command | ChainCommand | { readonly do: "burst"; readonly steps: readonly Command[] };

const WEIGHTS: Readonly<Record<keyof typeof commands, number>> = {
  open: 30,
  verify: 26,
  decide: 16,
  retry: 6,
  finish: 8,
  interrupt: 3,
  expire: 4,
  wait: 4,
  status: 7,
  session: 7,
  revoke: 2,
  policy: 4,
  switch: 2,
  fund: 6,
  threshold: 2,
  correct: 6,
  correction: 6,
  submit: 8,
  paid: 6,
  fail: 6,
};
const commandOf = (names: readonly (keyof typeof commands)[]): fc.Arbitrary<Command> =>
  fc.oneof(
    ...names.map((name) => ({
      weight: WEIGHTS[name],
      arbitrary: commands[name] as fc.Arbitrary<unknown>,
    })),
  ) as fc.Arbitrary<Command>;
const NAMES = Object.keys(commands) as (keyof typeof commands)[];

/** The clock stands still while several commands share a commit. */
const burst = fc.record({
  do: fc.constant("burst"),
  steps: fc.array(commandOf(NAMES.filter((name) => name !== "wait")), {
    minLength: 2,
    maxLength: 8,
    size: "max",
  }),
});
const step = fc.oneof(
  { weight: 6, arbitrary: commandOf(NAMES) },
  { weight: 1, arbitrary: burst },
) as fc.Arbitrary<Step>;
/** A day, in which the limits of a wallet are free again, and sessions and warrants end. */
const day = fc.constant({ do: "wait", minutes: 1_440 } as const);
const stepWithTreasury = fc.oneof(
  { weight: 16, arbitrary: step },
  { weight: 16, arbitrary: chainCommand },
  { weight: 1, arbitrary: day },
) as fc.Arbitrary<Step>;

/**
 * Every history begins with some warrants, half of them with an agent that has a session, and some with a correction that
 * waits for a person, and no longer for a passkey.
 */
export function firstSteps({
  sessionBudget,
  firstCheckFails,
  correctionWaits,
  walletLimits: wallet,
}: Beginning & Pick<Setting, "walletLimits">): readonly Step[] {
  const session = {
    do: "session",
    agent: 1,
    ceiling: 10_000n,
    limit: null,
    budget: sessionBudget,
    minutes: 600,
    limits: null,
  };
  const terms = {
    do: "open",
    amount: 100n,
    asset: "USDC",
    payee: "acme",
    policy: null,
    minutes: 600,
    reuse: null,
  };
  const opens = [0, 1, 1, 1].map((key, at) => ({ ...terms, who: { key }, agent: at === 3 ? "none" : "own" }));
  const sent = { who: { key: 1 }, ifMatch: null, reuse: null };
  const check = { do: "verify", ...sent, warrant: 1, passes: 0, code: "path_not_found", hangs: false };
  const waits = [
    { do: "fund", asset: "USDC", amount: 500n, reference: null },
    { do: "threshold", amount: 100n },
    { do: "correct", by: "admin", deposit: 1, to: "nothing" },
    { do: "threshold", amount: null },
  ];
  return [
    ...(sessionBudget === null ? [] : [session]),
    ...opens,
    ...(firstCheckFails ? [check] : []),
    ...(correctionWaits ? waits : []),
    ...(wallet === null ? [] : [{ do: "sender", registered: true }]),
  ] as readonly Step[];
}

export type Beginning = {
  /** Null means that there is no session. */
  readonly sessionBudget: number | null;
  readonly firstCheckFails: boolean;
  readonly correctionWaits: boolean;
};

const setting = {
  mode: fc.constantFrom("sandbox", "live"),
  hasAdmin: fc.boolean(),
  budgets: fc.tuple(fc.constantFrom(1, 2, 50), fc.constantFrom(2, 50, 50)),
  mustBeNamed: fc.constantFrom(false, false, true),
  walletLimits: fc.constant(null),
  sessionBudget: fc.constantFrom(null, null, null, 1, 1, 2),
  firstCheckFails: fc.constantFrom(false, false, false, true),
  correctionWaits: fc.constantFrom(false, false, false, true),
};

const historyOf = (given: object, steps: fc.Arbitrary<Step>) =>
  fc.record({
    given: fc.record({ ...setting, ...given }) as fc.Arbitrary<Setting & Beginning>,
    // Without the bias to small numbers, which are not special here and would make all histories similar.
    steps: fc.noBias(fc.array(steps, { minLength: 15, maxLength: 45, size: "max" })),
  });

/** One in three has a treasury on a chain. */
export const history = fc.oneof(
  { weight: 2, arbitrary: historyOf({}, step) },
  { weight: 1, arbitrary: historyOf({ mode: fc.constant("sandbox"), walletLimits }, stepWithTreasury) },
);
