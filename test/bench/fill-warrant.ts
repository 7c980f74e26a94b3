import type { KeyCaller } from "../../src/core/roles.ts";
import { openWarrant } from "../../src/services/warrants/open.ts";
import { resolveEscalation } from "../../src/services/warrants/resolve.ts";
import {
  ALL_PASS,
  idempotencyOf,
  must,
  NONE_PASS,
  type Script,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../support/stage.ts";
import { DAY_MS } from "./load.ts";
import { opening } from "./opening.ts";

/**
 * The final state of a warrant. An expired one is opened with a deadline that has passed when the fill ends.
 */
export type Fate =
  | "held"
  | "released"
  | "partially released"
  | "refunded"
  | "escalated"
  | "disputed"
  | "decided"
  | "expired";

/** The caller of an open: an agent by its key, or a person where there is none. */
export type Party = {
  readonly stage: Stage;
  readonly key: KeyCaller | null;
  readonly agentId: string | null;
  /** Its share of all opens, relative to the other parties. */
  readonly share: number;
  /** Until which part of the fill it opens, from 0 to 1. */
  readonly until: number;
  /** The fate of all its warrants; null where their fates differ. */
  readonly fate: Fate | null;
  /** Whether it belongs to the organisation whose lists are measured. */
  readonly measured: boolean;
};

export type Filling = { readonly now: () => number; readonly random: () => number };

const HOUR_MS = DAY_MS / 24;
const [passes, fails] = [ALL_PASS[0] ?? null, NONE_PASS[0] ?? null];

/** The results of the clauses. The policy of the parties decides by how many pass. */
const SCRIPTS: Readonly<Record<Exclude<Fate, "held" | "expired">, Script>> = {
  released: ALL_PASS,
  "partially released": [passes, passes, passes, fails],
  refunded: NONE_PASS,
  escalated: [passes, passes, fails, fails],
  disputed: [passes, passes, fails, fails],
  decided: [passes, passes, fails, fails],
};

/**
 * Opens a warrant and moves it to the state of its fate. Answers its id and how many trace entries it has.
 */
export async function fillWarrant(party: Party, fate: Fate, filling: Filling) {
  const { stage, key, agentId, measured } = party;
  const caller = key ?? stage.operator;
  const input = {
    ...openingOf(fate, filling),
    ...(agentId === null ? {} : { agent_id: agentId }),
  };
  const { id } = warrantIn(await openWarrant(stage.ctx, caller, input, newIdempotency()));
  const ended = (entries: number) => ({ id, entries, measured });
  if (fate === "held" || fate === "expired") return ended(1);
  must(await verify(stage, caller, id, SCRIPTS[fate], newIdempotency()));
  if (fate === "disputed") {
    const dispute = {
      id,
      decision: "dispute",
      releasedBps: null,
      note: "The report is late.",
      ifMatch: null,
    };
    must(
      await resolveEscalation(
        stage.ctx,
        stage.operator,
        { ...dispute, decision: "dispute" },
        newIdempotency(),
      ),
    );
  } else if (fate === "decided") {
    must(await settle(stage, stage.operator, id, "refund", { idempotency: newIdempotency() }));
  } else {
    return ended(3);
  }
  return ended(4);
}

function openingOf(fate: Fate, { now, random }: Filling) {
  const aheadMs = fate === "expired" ? HOUR_MS + random() * DAY_MS : (90 + random() * 1_500) * DAY_MS;
  const amount = String(1 + Math.floor(random() * 1_000_000));
  return opening(Math.floor(now() + aheadMs), amount, `acct_seller_${Math.floor(random() * 500)}`);
}

/** An idempotency key and fingerprint, as random and as long as a client's. */
const newIdempotency = () =>
  idempotencyOf(crypto.randomUUID(), `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll("-", ""));
