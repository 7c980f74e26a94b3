import type { Balance } from "../../src/core/postings.ts";
import type { Mode } from "../../src/core/roles.ts";
import type { Credentials } from "./parties.ts";
import type { Json } from "./program.ts";

/** A request that moves money, as it is sent, and sent again. */
export type Sent = {
  readonly key: string;
  readonly path: string;
  readonly body: string;
  readonly as: Credentials;
  /** For an open: who sent it. */
  readonly opens: Opener | null;
};
type Opener = {
  readonly mode: Mode;
  readonly as: Credentials;
  /** Whether the load may move the warrant. A purchase moves its own, and one that is left alone shows what sweeps do. */
  readonly mayMove: boolean;
};

export type Answer = { readonly status: number; readonly text: string; readonly replayed: boolean };
export type Acknowledged = { readonly sent: Sent; readonly answer: Answer };

/** What a client knows of a warrant from the answers that it has. */
export type KnownWarrant = {
  readonly id: string;
  readonly mode: Mode;
  /** The key that opened it, which is its agent's own. */
  readonly as: Credentials;
  readonly amount: bigint;
  /** Null where the answer of a purchase did not say it. */
  readonly payee: string | null;
  readonly deadline: number;
  readonly version: number;
  readonly state: string;
  readonly releasedBps: number | null;
  readonly mayMove: boolean;
};

const FINAL = new Set(["released", "partially_released", "refunded", "expired"]);
export const isFinal = ({ state }: Pick<KnownWarrant, "state">): boolean => FINAL.has(state);

const paidBy = ({ amount, releasedBps }: KnownWarrant): bigint =>
  (amount * BigInt(releasedBps ?? 0)) / 10_000n;

/** Everything that the answers have said, which must stay true. */
export type Knowledge = {
  readonly warrants: ReadonlyMap<string, KnownWarrant>;
  readonly funded: Record<Mode, bigint>;
  /** Keys of what was done: opens, checks, people's decisions, and purchases. */
  readonly done: Readonly<Record<Deed, ReadonlySet<string>>>;
  /** Learns from an answer of 2xx: a warrant, or an escalation with one. Throws where it contradicts what is known. */
  acknowledge(acknowledged: Acknowledged): void;
  /** Learns from a read of a warrant; throws in the same way. */
  learn(body: Json): void;
  /** What was ever paid to each payee of a mode, which follows from the same. */
  paid(mode: Mode): ReadonlyMap<string, bigint>;
  /** The balance of a mode that follows from the last known state of every warrant. */
  balance(mode: Mode): Balance;
};

type Deed = "open" | "check" | "decision" | "purchase";

export const PAY = "/v1/x402/pay";

const deedOf = ({ path, opens }: Sent): Deed =>
  path === PAY ? "purchase" : opens ? "open" : path.endsWith("/verify") ? "check" : "decision";

/** What the answer of a purchase says of its warrant: it names no version, and is to be read. */
const boughtIn = ({ warrant_id: id, quoted }: Json): Json => ({
  id,
  state: "held",
  version: 0,
  amount: quoted.amount,
  deadline: null,
  released_bps: null,
});

export function createKnowledge(funded: Record<Mode, bigint>): Knowledge {
  const warrants = new Map<string, KnownWarrant>();
  const done = {
    open: new Set<string>(),
    check: new Set<string>(),
    decision: new Set<string>(),
    purchase: new Set<string>(),
  };

  function learn(body: Json, opener?: Opener): void {
    const { id, state, version, amount, deadline, released_bps: releasedBps } = body.warrant ?? body;
    const known = warrants.get(id);
    const from = known ?? opener;
    if (!from) throw new Error(`an answer about a warrant that nobody opened: ${id}`);
    const learnt: KnownWarrant = {
      id,
      mode: from.mode,
      as: from.as,
      amount: BigInt(amount),
      payee: (body.warrant ?? body).payee ?? known?.payee ?? null,
      deadline: Date.parse(deadline),
      version,
      state,
      releasedBps,
      mayMove: from.mayMove,
    };
    if (known) refuseContradiction(known, learnt);
    if (!known || version > known.version) warrants.set(id, learnt);
  }

  return {
    warrants,
    funded,
    done,
    acknowledge({ sent, answer }) {
      const body = JSON.parse(answer.text);
      const deed = deedOf(sent);
      learn(deed === "purchase" ? boughtIn(body) : body, sent.opens ?? undefined);
      done[deed].add(sent.key);
    },
    learn: (body) => learn(body),
    paid(mode) {
      const paid = new Map<string, bigint>();
      for (const warrant of warrants.values()) {
        if (warrant.mode !== mode || !isFinal(warrant) || paidBy(warrant) === 0n) continue;
        const payee = warrant.payee ?? "";
        paid.set(payee, (paid.get(payee) ?? 0n) + paidBy(warrant));
      }
      return paid;
    },
    balance(mode) {
      let [held, paid] = [0n, 0n];
      for (const warrant of warrants.values()) {
        if (warrant.mode !== mode) continue;
        if (isFinal(warrant)) paid += paidBy(warrant);
        else held += warrant.amount;
      }
      return { available: funded[mode] - held - paid, held, paid };
    },
  };
}

/** Two answers about one version must be the same, and nothing may come after a final state. */
function refuseContradiction(known: KnownWarrant, learnt: KnownWarrant): void {
  const same = known.version === learnt.version;
  const [earlier, later] = known.version <= learnt.version ? [known, learnt] : [learnt, known];
  const differs =
    earlier.amount !== later.amount ||
    (same && (earlier.state !== later.state || earlier.releasedBps !== later.releasedBps));
  if (differs || (!same && isFinal(earlier))) {
    throw new Error(
      `${known.id} was ${earlier.state} at version ${earlier.version}, and then ${later.state} at ${later.version}`,
    );
  }
}
