import type { Balance } from "../../src/core/postings.ts";
import type { Mode } from "../../src/core/roles.ts";
import type { Credentials } from "./parties.ts";
import type { Json } from "./program.ts";

/** A money-moving request as it is sent, and sent again. */
export type Sent = {
  readonly key: string;
  readonly path: string;
  readonly body: string;
  readonly as: Credentials;
  /** Of an open: who opened. */
  readonly opens: Opener | null;
};
type Opener = { readonly mode: Mode; readonly as: Credentials };

export type Answer = { readonly status: number; readonly text: string; readonly replayed: boolean };
export type Acknowledged = { readonly sent: Sent; readonly answer: Answer };

/** What a client knows of a warrant from the answers that it has. */
export type KnownWarrant = {
  readonly id: string;
  readonly mode: Mode;
  /** The key that opened it: its own agent's. */
  readonly as: Credentials;
  readonly amount: bigint;
  readonly deadline: number;
  readonly version: number;
  readonly state: string;
  readonly releasedBps: number | null;
};

const FINAL = new Set(["released", "partially_released", "refunded", "expired"]);
export const isFinal = ({ state }: Pick<KnownWarrant, "state">): boolean => FINAL.has(state);

/** Everything that the client has been told, which must stay true. */
export type Knowledge = {
  readonly warrants: ReadonlyMap<string, KnownWarrant>;
  readonly funded: Record<Mode, bigint>;
  /** Keys of what was done: opens, checks, and people's decisions. */
  readonly done: Readonly<Record<Deed, ReadonlySet<string>>>;
  /** From an answer of 2xx: a warrant, or an escalation that carries one. Throws where it contradicts what is known. */
  acknowledge(acknowledged: Acknowledged): void;
  /** From a read of a warrant; throws as well. */
  learn(body: Json): void;
  /** The balance of a mode that follows from the last known state of every warrant. */
  balance(mode: Mode): Balance;
};

type Deed = "open" | "check" | "decision";

const deedOf = ({ path, opens }: Sent): Deed =>
  opens ? "open" : path.endsWith("/verify") ? "check" : "decision";

export function createKnowledge(funded: Record<Mode, bigint>): Knowledge {
  const warrants = new Map<string, KnownWarrant>();
  const done = { open: new Set<string>(), check: new Set<string>(), decision: new Set<string>() };

  function learn(body: Json, opener?: Opener): void {
    const { id, state, version, amount, deadline, released_bps: releasedBps } = body.warrant ?? body;
    const known = warrants.get(id);
    const from = known ?? opener;
    if (!from) throw new Error(`an answer about a warrant that nobody opened: ${id}`);
    const told: KnownWarrant = {
      id,
      mode: from.mode,
      as: from.as,
      amount: BigInt(amount),
      deadline: Date.parse(deadline),
      version,
      state,
      releasedBps,
    };
    if (known) refuseContradiction(known, told);
    if (!known || version > known.version) warrants.set(id, told);
  }

  return {
    warrants,
    funded,
    done,
    acknowledge({ sent, answer }) {
      learn(JSON.parse(answer.text), sent.opens ?? undefined);
      done[deedOf(sent)].add(sent.key);
    },
    learn: (body) => learn(body),
    balance(mode) {
      let [held, paid] = [0n, 0n];
      for (const warrant of warrants.values()) {
        if (warrant.mode !== mode) continue;
        if (isFinal(warrant)) paid += (warrant.amount * BigInt(warrant.releasedBps ?? 0)) / 10_000n;
        else held += warrant.amount;
      }
      return { available: funded[mode] - held - paid, held, paid };
    },
  };
}

/** Of one version there is one truth, and nothing comes after a final state. */
function refuseContradiction(known: KnownWarrant, told: KnownWarrant): void {
  const same = known.version === told.version;
  const [earlier, later] = known.version <= told.version ? [known, told] : [told, known];
  const differs =
    earlier.amount !== later.amount ||
    (same && (earlier.state !== later.state || earlier.releasedBps !== later.releasedBps));
  if (differs || (!same && isFinal(earlier))) {
    throw new Error(
      `${known.id} was ${earlier.state} at version ${earlier.version}, and then ${later.state} at ${later.version}`,
    );
  }
}
