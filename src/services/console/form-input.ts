import { Value } from "@sinclair/typebox/value";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { parseUnits } from "../../core/money.ts";
import { DAY_MS, HOUR_MS, isoTime } from "../../core/time.ts";
import { resolveBody } from "../../resources/escalation.ts";
import { openBody, partialBody } from "../../resources/warrant.ts";
import { refuseAsset } from "../fields.ts";
import type { OpenInput } from "../warrants/open.ts";

/** What people write in forms, as the verbs take it. It is checked by the same forms as what programs send. */

type Fields = Readonly<Record<string, string>>;

/** How far ahead a deadline may be chosen, in words and in time. */
export const DEADLINES = {
  "1h": ["In 1 hour", HOUR_MS],
  "6h": ["In 6 hours", 6 * HOUR_MS],
  "1d": ["In 1 day", DAY_MS],
  "3d": ["In 3 days", 3 * DAY_MS],
  "7d": ["In 7 days", 7 * DAY_MS],
  "30d": ["In 30 days", 30 * DAY_MS],
  "90d": ["In 90 days", 90 * DAY_MS],
} as const satisfies Readonly<Record<string, readonly [string, number]>>;

const isDeadline = (text: string): text is keyof typeof DEADLINES => Object.hasOwn(DEADLINES, text);

/** A new warrant. The amount is in units, such as 8.40, and the clauses are JSON. */
export function readOpening(fields: Fields, now: number): OpenInput | Refusal {
  const { amount = "", asset = "USDC", payee = "", deadline = "", clauses = "" } = fields;
  const refused = refuseAsset("asset", asset);
  if (refused) return refused;
  const units = parseUnits(amount.trim(), asset);
  if (units === null) return refuseField("amount", `must be an amount of ${asset}, such as 8.40`);
  if (!isDeadline(deadline)) return refuseField("deadline", "must be one of the list");
  const parsed = parseClauses(clauses);
  if (isRefusal(parsed)) return parsed;
  const body = {
    amount: units.toString(),
    asset,
    payee: payee.trim(),
    deadline: isoTime(now + DEADLINES[deadline][1]),
    spec: { clauses: parsed },
    ...(fields.agent_id && { agent_id: fields.agent_id }),
    ...(fields.verifier_id && { verifier_id: fields.verifier_id }),
  };
  return refuseForm(openBody, body) ?? body;
}

/** An array of clauses, or the object that holds it, as the documentation shows both. */
function parseClauses(text: string): readonly unknown[] | Refusal {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuseField("clauses", 'must be JSON, such as [{ "kind": "http.status", "equals": 200 }]');
  }
  const list = (value as { readonly clauses?: unknown } | null)?.clauses ?? value;
  return Array.isArray(list) && list.length > 0
    ? list
    : refuseField("clauses", "must be an array of 1 to 64 clauses");
}

/** The version of the warrant that a form shows: what is decided stands on it. */
export const readVersion = (text: string | undefined): number | Refusal =>
  /^[1-9]\d{0,14}$/.test(text ?? "")
    ? Number(text)
    : refuseField("version", "is required; open the form again");

/** A share in per cent, such as 25 or 12.5, as basis points. */
export function readShare(text: string | undefined): number | Refusal {
  const bps = /^\d{1,2}(\.\d{1,2})?$/.test(text ?? "") ? Math.round(Number(text) * 100) : Number.NaN;
  const refused = refuseForm(partialBody, { released_bps: bps });
  return refused ? refuseField("share", "must be more than 0 % and less than 100 %, such as 12.5") : bps;
}

/** What a person says about a decision, in one line; null where they say nothing. */
export function readNote(text: string | undefined): string | null | Refusal {
  const note = (text ?? "").replace(/\s+/g, " ").trim();
  if (note === "") return null;
  const refused = refuseForm(resolveBody, { decision: "refund", note });
  return refused ?? note;
}

function refuseForm(form: Parameters<typeof Value.Errors>[0], value: unknown): Refusal | null {
  const error = Value.Errors(form, value).First();
  if (!error) return null;
  const path = error.path.slice(1).replaceAll("/", ".") || "form";
  const rule = error.schema.description;
  return refuseField(path, rule === undefined ? error.message.toLowerCase() : `must be ${rule}`);
}
