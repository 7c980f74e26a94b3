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

/** What becomes of a warrant. An expired one is opened with a deadline that has passed when the fill ends. */
export type Fate =
  | "held"
  | "released"
  | "partially released"
  | "refunded"
  | "escalated"
  | "disputed"
  | "decided"
  | "expired";

/** Who opens: an agent by its key; without one, a person. */
export type Party = {
  readonly stage: Stage;
  readonly key: KeyCaller | null;
  readonly agentId: string | null;
  /** Among the parties, in parts. */
  readonly share: number;
  /** How far into the fill it opens, from 0 to 1. */
  readonly until: number;
  /** Of all that it opens; null where they differ. */
  readonly fate: Fate | null;
  /** Whether it is of the organisation whose lists are measured. */
  readonly measured: boolean;
};

export type Filling = { readonly now: () => number; readonly random: () => number };

const HOUR_MS = DAY_MS / 24;
const [passes, fails] = [ALL_PASS[0] ?? null, NONE_PASS[0] ?? null];

/** What the clauses find: the policy of the parties pays by how many pass. */
const SCRIPTS: Readonly<Record<Exclude<Fate, "held" | "expired">, Script>> = {
  released: ALL_PASS,
  "partially released": [passes, passes, passes, fails],
  refunded: NONE_PASS,
  escalated: [passes, passes, fails, fails],
  disputed: [passes, passes, fails, fails],
  decided: [passes, passes, fails, fails],
};

/** Opens a warrant and moves it to where its fate has it; its id, and how many trace entries it has. */
export async function fillWarrant(party: Party, fate: Fate, filling: Filling) {
  const { stage, key, agentId, measured } = party;
  const caller = key ?? stage.operator;
  const input = {
    ...openingOf(fate, filling),
    ...(agentId === null ? {} : { agent_id: agentId }),
  };
  const { id } = warrantIn(await openWarrant(stage.ctx, caller, input, newIntent()));
  const ended = (entries: number) => ({ id, entries, measured });
  if (fate === "held" || fate === "expired") return ended(1);
  must(await verify(stage, caller, id, SCRIPTS[fate], newIntent()));
  if (fate === "disputed") {
    const dispute = {
      id,
      decision: "dispute",
      releasedBps: null,
      note: "The report is late.",
      ifMatch: null,
    };
    must(
      await resolveEscalation(stage.ctx, stage.operator, { ...dispute, decision: "dispute" }, newIntent()),
    );
  } else if (fate === "decided") {
    must(await settle(stage, stage.operator, id, "refund", { idempotency: newIntent() }));
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

/** Keys and fingerprints as random and as long as a client's. */
const newIntent = () =>
  idempotencyOf(crypto.randomUUID(), `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll("-", ""));
