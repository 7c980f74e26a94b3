import type { Clause } from "../core/clauses/registry.ts";
import type { PolicyRules } from "../core/policy.ts";
import type { State } from "../core/warrant.ts";
import type { Terms } from "./paid-page.ts";
import type { Deliverable } from "./seller.ts";

/** The seller, as warrants name it. */
export const PAYEE = "northwind-weather";
/** The deposit at the start: 100.00 USDC. */
export const FUNDS = 100_000_000n;

export const SCHEMA_NAME = "weather.v1";
export const SCHEMA = {
  type: "object",
  required: ["city", "generated_at", "days"],
  properties: {
    city: { const: "Oslo" },
    generated_at: { type: "string", format: "date-time" },
    days: {
      type: "array",
      items: {
        type: "object",
        required: ["date", "low", "high"],
        properties: {
          date: { type: "string", format: "date" },
          low: { type: "number" },
          high: { type: "number" },
        },
      },
    },
  },
};

/** The clauses of every warrant of the tour, and what each asks, for people. */
export const PROMISE: readonly {
  readonly clause: Clause;
  readonly asks: string;
  readonly inWords: string;
}[] = [
  { clause: { kind: "http.status", equals: 200 }, asks: "200", inWords: "the seller answers" },
  {
    clause: { kind: "json.schema", schema: SCHEMA_NAME },
    asks: SCHEMA_NAME,
    inWords: "every day has a date, a low and a high",
  },
  {
    clause: { kind: "json.jsonpath", path: "$.days[6]" },
    asks: "$.days[6]",
    inWords: "there are seven days",
  },
  {
    clause: { kind: "data.freshness", maxAgeSeconds: 3_600 },
    asks: "at most 3600 s",
    inWords: "it was made within the hour",
  },
];
export const CLAUSES = PROMISE.map(({ clause }) => clause);

export const POLICY_NAME = "fair-pay";
export const RULES = {
  bands: [
    { minScore: 1, outcome: "release", label: "complete" },
    { minScore: 0.5, outcome: "partial_release", releasedBps: 5_000, label: "usable" },
    { minScore: 0.25, outcome: "escalate", label: "doubtful" },
    { minScore: 0, outcome: "refund", label: "worthless" },
  ],
  alwaysEscalate: ["data_stale"],
  alwaysRefund: ["source_not_found"],
  maxAmount: "50000000",
} as const satisfies PolicyRules;

/** The organisation's balance, in the smallest unit of USDC. */
export type Balance = { readonly available: bigint; readonly held: bigint; readonly paid: bigint };

/** One deliverable, and the outcome that it must have. */
export type Scene = {
  readonly name: string;
  readonly deliverable: Deliverable;
  readonly amount: bigint;
  readonly state: State;
  /** The reason code of each clause; null where it passes. */
  readonly codes: readonly (string | null)[];
  readonly balance: Balance;
};

const usdc = (cents: bigint): bigint => cents * 10_000n;

export const SCENES: readonly Scene[] = [
  {
    name: "A good forecast",
    deliverable: "good",
    amount: usdc(12_00n),
    state: "released",
    codes: [null, null, null, null],
    balance: { available: usdc(88_00n), held: 0n, paid: usdc(12_00n) },
  },
  {
    name: "Half a forecast: three days, without their lows",
    deliverable: "half",
    amount: usdc(8_00n),
    state: "partially_released",
    codes: [null, "schema_mismatch", "path_not_found", null],
    balance: { available: usdc(84_00n), held: 0n, paid: usdc(16_00n) },
  },
  {
    name: "A stale forecast: complete, and two days old",
    deliverable: "stale",
    amount: usdc(20_00n),
    state: "escalated",
    codes: [null, null, null, "data_stale"],
    balance: { available: usdc(64_00n), held: usdc(20_00n), paid: usdc(16_00n) },
  },
  {
    name: "A broken seller",
    deliverable: "broken",
    amount: usdc(5_00n),
    state: "refunded",
    codes: ["status_mismatch", "body_not_json", "body_not_json", "no_timestamp"],
    balance: { available: usdc(64_00n), held: usdc(20_00n), paid: usdc(16_00n) },
  },
];

/** How the owner decides the warrant of the stale forecast. */
export const JUDGEMENT = {
  releasedBps: 2_500,
  note: "Two days old, but five of the seven days are still ahead.",
  state: "partially_released",
  balance: { available: usdc(79_00n), held: 0n, paid: usdc(21_00n) },
} as const satisfies { releasedBps: number; note: string; state: State; balance: Balance };

/** The purchase by x402: what the seller asks before it delivers, the most that the agent pays, and the outcome. */
export const PURCHASE = {
  terms: { amount: `${usdc(1_50n)}`, asset: "USDC", payee: PAYEE },
  maxAmount: usdc(2_00n),
  state: "released",
  /** The states that the warrant goes through. */
  path: ["held", "verifying", "released"],
  balance: { available: usdc(77_50n), held: 0n, paid: usdc(22_50n) },
} as const satisfies {
  terms: Terms;
  maxAmount: bigint;
  state: State;
  path: readonly State[];
  balance: Balance;
};
