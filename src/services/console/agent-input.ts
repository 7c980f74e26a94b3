import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { displayAmount, parseUnits } from "../../core/money.ts";
import { DAY_MS, HOUR_MS, isoTime } from "../../core/time.ts";
import type { AgentChange, AgentInput } from "../admin/agents.ts";
import type { SessionInput } from "../admin/sessions.ts";

/** What people write in the forms of agents, keys and sessions, as the verbs take it. The verbs check the values. */

export type Fields = Readonly<Record<string, string>>;

/** The asset of every limit. */
export const LIMIT_ASSET = "USDC";

/** How long a session may be chosen to last, in words and in time. */
export const LIFETIMES = {
  "1h": ["1 hour", HOUR_MS],
  "1d": ["1 day", DAY_MS],
  "7d": ["7 days", 7 * DAY_MS],
  "30d": ["30 days", 30 * DAY_MS],
  "90d": ["90 days", 90 * DAY_MS],
  "365d": ["1 year", 365 * DAY_MS],
} as const satisfies Readonly<Record<string, readonly [string, number]>>;

/** How long an old key may be chosen to go on beside a new one, in words; by its seconds. */
export const OVERLAPS = {
  "0": "Not at all: it ends at once",
  "3600": "1 hour",
  "86400": "1 day",
  "604800": "7 days",
  "2592000": "30 days",
} as const satisfies Readonly<Record<string, string>>;

/** A whole number; undefined where nothing was written. Other text is NaN, which the verbs refuse by the field's name. */
function wholeNumber(text: string | undefined): number | undefined {
  const written = (text ?? "").trim();
  if (written === "") return undefined;
  return /^\d{1,15}$/.test(written) ? Number(written) : Number.NaN;
}

/** Whether an agent must be named. Where nothing is said, it must. */
const readMustBeNamed = (text: string | undefined): boolean => text !== "off";

export type NewAgent = Omit<AgentInput, "organisation_id" | "mode">;

export function readNewAgent(fields: Fields): NewAgent {
  const failureBudget = wholeNumber(fields.failure_budget);
  const didKey = (fields.did_key ?? "").trim();
  return {
    name: (fields.name ?? "").trim(),
    must_be_named: readMustBeNamed(fields.must_be_named),
    ...(failureBudget !== undefined && { failure_budget: failureBudget }),
    ...(didKey !== "" && { did_key: didKey }),
  };
}

/** The name of the field that says how another field was when the form was opened. */
export const wasField = (name: string): string => `${name}_was`;

/**
 * What differs from how the form was opened, so that it does not undo what somebody else changed meanwhile; null where
 * nothing does.
 */
export function readAgentChange(fields: Fields): Omit<AgentChange, "agent_id"> | null {
  const isChanged = (name: string) => (fields[name] ?? "").trim() !== (fields[wasField(name)] ?? "");
  const change = {
    ...(isChanged("name") && { name: (fields.name ?? "").trim() }),
    ...(isChanged("failure_budget") && { failure_budget: wholeNumber(fields.failure_budget) ?? Number.NaN }),
    ...(isChanged("must_be_named") && { must_be_named: readMustBeNamed(fields.must_be_named) }),
  };
  return Object.keys(change).length > 0 ? change : null;
}

const isLifetime = (text: string): text is keyof typeof LIFETIMES => text in LIFETIMES;

/** The fields of a session's form that hold amounts. Only the ceiling is required. */
const AMOUNTS = ["amount_ceiling", "per_warrant_max", "hourly_max", "daily_max"] as const;
type Amounts = { -readonly [Name in (typeof AMOUNTS)[number]]?: string };

function readAmounts(fields: Fields): Amounts | Refusal {
  const amounts: Amounts = {};
  for (const name of AMOUNTS) {
    const text = (fields[name] ?? "").trim();
    if (text === "" && name !== "amount_ceiling") continue;
    const amount = parseUnits(text, LIMIT_ASSET);
    if (amount === null) return refuseField(name, `must be an amount of ${LIMIT_ASSET}, such as 8.40`);
    amounts[name] = amount.toString();
  }
  return amounts;
}

/** One entry a line; undefined where there is none. */
function readLines(text: string | undefined): readonly string[] | undefined {
  const lines = (text ?? "").split("\n").map((line) => line.trim());
  const entries = lines.filter((line) => line !== "");
  return entries.length > 0 ? entries : undefined;
}

/** When it ends: at the exact time, where one was written; else after the lifetime that was chosen. */
function readEnd({ lifetime = "7d", expires_at: exact = "" }: Fields, now: number): string | Refusal {
  // What a browser's field for times sends has no seconds and no zone.
  if (exact !== "") return /^[-\d]+T\d\d:\d\d$/.test(exact) ? `${exact}:00Z` : exact;
  return isLifetime(lifetime)
    ? isoTime(now + LIFETIMES[lifetime][1])
    : refuseField("lifetime", "must be one of the list");
}

/** A new session's limits. Amounts are in units, such as 8.40; lists have one entry a line. */
export function readSessionLimits(fields: Fields, now: number): Omit<SessionInput, "agent_id"> | Refusal {
  const amounts = readAmounts(fields);
  if (isRefusal(amounts)) return amounts;
  const expiresAt = readEnd(fields, now);
  if (isRefusal(expiresAt)) return expiresAt;
  const [warrantLimit, failureBudget] = [
    wholeNumber(fields.warrant_limit),
    wholeNumber(fields.failure_budget),
  ];
  const [payees, origins] = [readLines(fields.payees), readLines(fields.source_origins)];
  return {
    ...amounts,
    amount_ceiling: amounts.amount_ceiling ?? "",
    expires_at: expiresAt,
    ...(warrantLimit !== undefined && { warrant_limit: warrantLimit }),
    ...(failureBudget !== undefined && { failure_budget: failureBudget }),
    ...(payees && { payees }),
    ...(origins && { source_origins: origins }),
  };
}

/** An amount as a form shows it: in units, without the asset. */
export const unitsOf = (amount: bigint | null): string =>
  amount === null ? "" : displayAmount(amount, LIMIT_ASSET).slice(0, -LIMIT_ASSET.length).replaceAll(" ", "");

/** How many seconds an old key goes on beside the new one. */
export const readOverlap = (text: string | undefined): number => wholeNumber(text) ?? Number.NaN;
