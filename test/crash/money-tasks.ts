import type { Mode } from "../../src/core/roles.ts";
import type { KnownDeposit, KnownMoney, KnownPayout } from "./known-money.ts";
import type { Random } from "./random.ts";

/** What an admin does next with money in and out. */

const MODES = ["live", "sandbox"] as const;
const AMOUNT_MAX = 1_000;
/** The mode that has a treasury on a chain. */
const TREASURY_MODE: Mode = "sandbox";
const REASON = "no such account";
const KINDS = [
  ...(["deposit", "deposit", "deposit", "repeat", "correct", "submit"] as const),
  ...(["paid", "paid", "paid", "fail", "fail", "return", "wrong", "assign"] as const),
] as const;

/** One thing to do. To do it twice is to do it once. */
export type Task = {
  readonly kind: "deposit" | "correction" | "submit" | "paid" | "failed" | "returned" | "assigned";
  readonly mode: Mode;
  /** The deposit, payout or transfer that it is about; null where it makes one. */
  readonly about: string | null;
  readonly command: readonly string[];
  /** The same at the console; null where the command line alone answers with an id. */
  readonly form: { readonly path: string; readonly fields: Readonly<Record<string, string>> } | null;
  /** The refusal that it must get, since it comes in the wrong order; null where it must be done. */
  readonly refusal: string | null;
};

const ownOf = (organisationId: string, mode: Mode) => ["--organisation", organisationId, "--mode", mode];

/** @param isBusy whether something that is about this id is not answered yet */
export function createTasks(
  organisationId: string,
  known: KnownMoney,
  random: Random,
  isBusy: (id: string) => boolean,
): () => Task {
  let references = 0;
  const any = <Item extends { readonly id: string }>(items: Iterable<Item>): Item | undefined => {
    const free = [...items].filter(({ id }) => !isBusy(id));
    return free[random.below(free.length)];
  };
  const payoutOf = (status: KnownPayout["status"]): KnownPayout | undefined =>
    any([...known.payouts.values()].filter((payout) => payout.status === status));

  /** What the state of a payout or the reference of a deposit forbids, and what the wallet alone ends. */
  function wrong(): Task | undefined {
    const [failed, paid, deposit] = [payoutOf("failed"), payoutOf("paid"), any(known.deposits.values())];
    const onChain = any([...known.onChain].map((id) => ({ id, mode: TREASURY_MODE })));
    const tasks = [
      ...(failed ? [ending(failed, "paid", "illegal_transition")] : []),
      ...(paid ? [ending(paid, "failed", "illegal_transition")] : []),
      ...(deposit
        ? [depositing(organisationId, { ...deposit, amount: deposit.amount + 1n }, "deposit_reference_used")]
        : []),
      ...(onChain ? [ending(onChain, random.pick(["paid", "failed"]), "illegal_transition")] : []),
    ];
    return tasks[random.below(tasks.length)];
  }

  function asked(mode: Mode): Task | undefined {
    switch (random.pick(KINDS)) {
      case "deposit":
        return depositing(organisationId, { mode, reference: `wire ${++references}`, amount: some() });
      case "repeat": {
        const deposit = any(known.deposits.values());
        return deposit && depositing(organisationId, deposit);
      }
      case "correct": {
        const deposit = any(known.deposits.values());
        // Never what it counts for: that would correct nothing.
        return deposit && correcting(deposit, deposit.counts + some());
      }
      case "paid":
        return endingOf(payoutOf("submitted"), "paid");
      case "fail":
        return endingOf(payoutOf("submitted"), "failed");
      case "return":
        return endingOf(payoutOf("paid"), "returned");
      case "assign": {
        const transfer = any([...known.unassigned].map((id) => ({ id })));
        return transfer && assigning(organisationId, transfer.id);
      }
      case "wrong":
        return wrong();
      default:
        return submitting(organisationId, mode);
    }
  }

  const some = (): bigint => 1n + BigInt(random.below(AMOUNT_MAX));
  return () => {
    const mode = random.pick(MODES);
    return asked(mode) ?? submitting(organisationId, mode);
  };
}

const depositing = (
  organisationId: string,
  { mode, reference, amount }: Pick<KnownDeposit, "mode" | "reference" | "amount">,
  refusal: string | null = null,
): Task => ({
  ...{ kind: "deposit", mode, about: null, form: null, refusal },
  command: [
    ...["balances", "fund", ...ownOf(organisationId, mode)],
    ...["--amount", `${amount}`, "--reference", reference],
  ],
});

const correcting = ({ id, mode }: KnownDeposit, amount: bigint): Task => ({
  ...{ kind: "correction", mode, about: id, form: null, refusal: null },
  command: ["balances", "correct", id, "--amount", `${amount}`, "--reason", "as the bank says"],
});

const submitting = (organisationId: string, mode: Mode): Task => ({
  ...{ kind: "submit", mode, about: null, refusal: null },
  command: ["payouts", "submit", ...ownOf(organisationId, mode)],
  // What the wallet sends a person releases with a passkey, which nobody has here. The command leaves it out.
  form: mode === TREASURY_MODE ? null : { path: "submit", fields: {} },
});

const assigning = (organisationId: string, id: string): Task => ({
  ...{ kind: "assigned", mode: TREASURY_MODE, about: id, form: null, refusal: null },
  command: ["deposits", "assign", id, "--organisation", organisationId],
});

const endingOf = (payout: KnownPayout | undefined, kind: "paid" | "failed" | "returned"): Task | undefined =>
  payout && ending(payout, kind);

function ending(
  { id, mode }: Pick<KnownPayout, "id" | "mode">,
  kind: "paid" | "failed" | "returned",
  refusal: string | null = null,
): Task {
  const reference = `transfer of ${id}`;
  const failing = ["payouts", "fail", id, "--reason", REASON, ...(kind === "returned" ? ["--returned"] : [])];
  return {
    ...{ kind, mode, about: id, refusal },
    command: kind === "paid" ? ["payouts", "mark-paid", id, "--reference", reference] : failing,
    form: {
      path: "end",
      fields: { payout: id, as: kind, ...(kind === "paid" ? { reference } : { reason: REASON }) },
    },
  };
}
