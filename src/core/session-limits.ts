import { type Refusal, refuse, refuseField } from "./errors.ts";
import { hasHiddenCharacters, NOTHING_HIDDEN } from "./hidden-characters.ts";
import { PAYEE_PATTERN } from "./money.ts";
import { isoTime } from "./time.ts";
import { isEvmAddress } from "./x402/assets.ts";

/**
 * The limits that a spend session may have besides its ceiling: lists of whom it may pay and from where, and
 * the most for one warrant, for an hour and for a day (docs/sessions, "Windows and lists").
 */
export type SessionLimits = {
  /** Whom it may pay; an entry that ends in `*` is every payee that begins like it. Null: everybody. */
  readonly payees: readonly string[] | null;
  /** The origins that it may verify from and buy from, in the form of `parseOrigin`. Null where all. */
  readonly sourceOrigins: readonly string[] | null;
  readonly perWarrantMax: bigint | null;
  readonly hourlyMax: bigint | null;
  readonly dailyMax: bigint | null;
};

/** How many entries a list has at most. */
export const LIST_MAX = 100;

/** How much of a window is used. */
export type WindowUse = {
  /** What was held in the window; what has returned since is not taken off. */
  readonly used: bigint;
  /** When the amount that was asked for will fit, epoch milliseconds. Null where it fits now, or never. */
  readonly fitsAt: number | null;
};

/** The use of the windows that a session has; null for one that it does not have. */
export type WindowUses = {
  /** The time at which a hold would count now, epoch milliseconds. It never runs back within a session. */
  readonly at: number;
  readonly hourly: WindowUse | null;
  readonly daily: WindowUse | null;
};

/** What was held between two running totals of a session, the later one second. */
export const heldBetween = (before: bigint, after: bigint): bigint =>
  BigInt.asUintN(TOTAL_BITS, after - before);

/** The running total after a hold. */
export const totalAfter = (total: bigint, amount: bigint): bigint =>
  BigInt.asUintN(TOTAL_BITS, total + amount);

/**
 * A running total begins anew at 2^63: what returns may be held again, so in all more may be held than an
 * amount can say. The difference of two totals is right all the same, since a window holds less than that.
 */
const TOTAL_BITS = 63;

/** What a charge is for. */
export type Charge = {
  readonly amount: bigint;
  readonly asset: string;
  /** Null as long as it is not known: of a purchase whose seller has not been asked. */
  readonly payee: string | null;
  /** The URL that is bought from; null for an open, whose source is named by the verify. */
  readonly sourceUrl: string | null;
};

type Limited = SessionLimits & { readonly id: string };

/** The first of these limits that forbids the charge, or null. They are asked in this order. */
export const refuseByLimits = (
  session: Limited,
  { amount, payee, sourceUrl }: Charge,
  { hourly, daily }: WindowUses,
): Refusal | null =>
  (payee === null ? null : refusePayee(session, payee)) ??
  (sourceUrl === null ? null : refuseSource(session, sourceUrl)) ??
  refuseAmount(session, amount) ??
  refuseWindow("hourly_max", "in an hour", session.id, session.hourlyMax, amount, hourly) ??
  refuseWindow("daily_max", "in a day", session.id, session.dailyMax, amount, daily);

const ONLY_ANOTHER = "It would pass only under another session.";

function refusePayee({ id, payees }: Limited, payee: string): Refusal | null {
  if (payees === null || payees.some((entry) => allowsPayee(entry, payee))) return null;
  return refuseLimit(
    "payees",
    `the spend session ${id} may pay ${shown(payees)}, and ${JSON.stringify(payee)} was named. ${ONLY_ANOTHER}`,
  );
}

/** Refuses a source whose origin the session does not allow. A redirect's target is asked by `allowsSource`. */
export function refuseSource({ id, sourceOrigins }: Limited, sourceUrl: string): Refusal | null {
  const url = new URL(sourceUrl);
  if (sourceOrigins === null || allowsSource(sourceOrigins, url)) return null;
  return refuseLimit(
    "source_origins",
    `the spend session ${id} may ask ${shown(sourceOrigins)}, and ${url.origin} was named. ${ONLY_ANOTHER}`,
  );
}

function refuseAmount({ id, perWarrantMax: max }: Limited, amount: bigint): Refusal | null {
  if (max === null || amount <= max) return null;
  return refuseLimit(
    "per_warrant_max",
    `the spend session ${id} holds at most ${max} for a warrant, and ${amount} was requested. ${ONLY_ANOTHER}`,
  );
}

/** @throws where the use of a window was not looked up, or for another amount */
function refuseWindow(
  field: "hourly_max" | "daily_max",
  window: string,
  id: string,
  max: bigint | null,
  amount: bigint,
  use: WindowUse | null,
): Refusal | null {
  if (max === null) return null;
  if (use === null) throw new Error(`the use of ${field} is not known`);
  if (use.used + amount <= max) return null;
  if (use.fitsAt === null && amount <= max) throw new Error(`${field} was looked up for another amount`);
  const when = use.fitsAt === null ? ONLY_ANOTHER : `It would pass at ${isoTime(use.fitsAt)}.`;
  return refuseLimit(
    field,
    `the spend session ${id} holds at most ${max} ${window}, ${use.used} is used, and ${amount} was requested. ${when}`,
  );
}

const refuseLimit = (field: string, problem: string): Refusal =>
  refuse("session_limit_exceeded", `${field}: ${problem}`);

const SHOWN_MAX = 5;

/** A list in words, the first entries of a long one. */
function shown(entries: readonly string[]): string {
  const first = entries.slice(0, SHOWN_MAX).map((entry) => JSON.stringify(entry));
  const more = entries.length - first.length;
  return `only ${first.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Addresses of EVM chains are compared without regard to capitals, which are only a checksum there. */
function allowsPayee(entry: string, payee: string): boolean {
  const [allowed, given] = isEvmAddress(payee) ? [entry.toLowerCase(), payee.toLowerCase()] : [entry, payee];
  return allowed.endsWith("*") ? given.startsWith(allowed.slice(0, -1)) : given === allowed;
}

/** Whether the list has the URL's origin. */
export function allowsSource(origins: readonly string[], url: URL): boolean {
  const withPort = `${url.protocol}//${url.hostname}:${portOf(url)}`;
  return origins.some((entry) =>
    entry.endsWith("*") ? withPort.startsWith(entry.slice(0, -1)) : url.origin === entry,
  );
}

const portOf = ({ port, protocol }: URL): string => port || (protocol === "https:" ? "443" : "80");

const PAYEE = new RegExp(PAYEE_PATTERN);

/** An entry of a list of payees, or what is wrong with it. */
export function parsePayee(path: string, entry: unknown): string | Refusal {
  if (entry === "*")
    return refuseField(path, "must not be * alone, which would allow every payee; leave the list out");
  const name = typeof entry === "string" && entry.endsWith("*") ? entry.slice(0, -1) : entry;
  return typeof entry === "string" && typeof name === "string" && PAYEE.test(name)
    ? entry
    : refuseField(
        path,
        `must be a payee of 1 to 512 characters, ${NOTHING_HIDDEN}, or how payees begin, followed by *`,
      );
}

const ORIGIN = /^(https?:\/\/)(?:(\[[0-9a-f:.]+\]|[^\s/?#@\\:*[\]]+)(?::([0-9]{0,5}))?(\/)?)?(\*)?$/i;

const ORIGIN_RULE =
  "must be an origin, such as https://api.example or https://api.example:8443; with * at the end https://api.example:* stands for every port, and https://* for every host";

/**
 * The entry of a list of origins in the one form in which it is compared: lower case, an international name in
 * its ASCII form, no default port. Or what is wrong with it. A `*` within the host is refused: `https://good.example*`
 * would also allow https://good.example.evil.example.
 */
export function parseOrigin(path: string, entry: unknown): string | Refusal {
  const parts = typeof entry === "string" && !hasHiddenCharacters(entry) ? ORIGIN.exec(entry) : null;
  if (!parts) return refuseField(path, ORIGIN_RULE);
  const [, scheme = "", host, port, slash, star] = parts;
  if (host === undefined) return star ? `${scheme.toLowerCase()}*` : refuseField(path, ORIGIN_RULE);
  const url = URL.parse(port ? `${scheme}${host}:${port}` : `${scheme}${host}`);
  if (url === null || url.hostname === "") return refuseField(path, ORIGIN_RULE);
  if (star && port === undefined && !slash) {
    return refuseField(
      path,
      `must not end within the host: ${entry} would also allow ${scheme}${host}.evil.example; ${ORIGIN_RULE}`,
    );
  }
  if (star && !slash) return `${url.protocol}//${url.hostname}:${port}*`;
  return port === "" ? refuseField(path, ORIGIN_RULE) : url.origin;
}
