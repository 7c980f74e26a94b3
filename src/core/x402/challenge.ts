import { type Refusal, refuse } from "../errors.ts";
import { hasHiddenCharacters, NOTHING_HIDDEN } from "../hidden-characters.ts";
import { ASSET_PATTERN, PAYEE_PATTERN } from "../money.ts";
import { isJsonObject, type JsonObject, readJson, readJsonHeader } from "./json-header.ts";

/** What a 402 asks for, in one of the three forms that Holdfast understands (docs/x402, "Challenges"). */
export type Challenge =
  | { readonly kind: "simple"; readonly amount: bigint; readonly asset: string; readonly payee: string }
  | {
      readonly kind: "protocol";
      readonly protocol: 1 | 2;
      /**
       * What is bought, as protocol version 2 describes it; it is sent back with the payment. Null in version
       * 1.
       */
      readonly resource: JsonObject | null;
      /** At least one. */
      readonly entries: readonly ChallengeEntry[];
    };

/** One of the ways to pay that a seller accepts. */
export type ChallengeEntry = {
  /** Its place in the challenge, such as `accepts.0`. */
  readonly path: string;
  readonly scheme: string;
  readonly network: string;
  /** Above zero. It may be above AMOUNT_MAX: the numbers of a chain are larger. */
  readonly amount: bigint;
  readonly asset: string;
  readonly payTo: string;
  readonly timeoutSeconds: number;
  readonly extra: JsonObject;
  /** The entry as it came. */
  readonly given: JsonObject;
};

/** The answer that asks for payment. */
export type PaymentRequired = {
  /** The headers by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
};

const HEADER = "PAYMENT-REQUIRED";
export const CHALLENGE_BYTES_MAX = 256 * 1024;
const ENTRIES_MAX = 32;
const NAME_LENGTH_MAX = 128;
/** The numbers of a chain are below 2^256, which has 78 digits. */
const DIGITS_MAX = 78;
/** A warrant's deadline is at most five years ahead (docs/concepts, "Bounds"). */
const TIMEOUT_SECONDS_MAX = 5 * 365 * 24 * 60 * 60;

const ASSET = new RegExp(ASSET_PATTERN);
const PAYEE = new RegExp(PAYEE_PATTERN);

const unreadable = (problem: string): Refusal =>
  refuse("x402_challenge_invalid", `The seller's 402 cannot be read: ${problem}.`);

/** The refusal of a body above CHALLENGE_BYTES_MAX. */
export const CHALLENGE_TOO_LONG: Refusal = unreadable("its body is larger than 256 kB");

/** The header whose challenge is used even where a body has another one; undefined where it was not sent. */
export const challengeHeaderOf = (headers: PaymentRequired["headers"]): string | undefined =>
  headers[HEADER.toLowerCase()] || undefined;

/**
 * The challenge of a 402. The header wins; without it the challenge is in the body, at its top level or under `x402`. An entry
 * that cannot be read cannot be paid, so it is left out. Where none is left, or nothing can be read, the refusal is
 * `x402_challenge_invalid`, and its message says what is wrong.
 */
export function parseChallenge({ headers, body }: PaymentRequired): Challenge | Refusal {
  const header = challengeHeaderOf(headers);
  if (header) {
    const read = readJsonHeader(header);
    if ("problem" in read) return unreadable(`${HEADER} ${read.problem}`);
    return isJsonObject(read.value)
      ? parseProtocol(read.value, 2, `${HEADER} `)
      : unreadable(`${HEADER} is not a JSON object`);
  }
  // A text has at least as many bytes as characters. One with too many characters is refused before it is
  // copied.
  if (body.length > CHALLENGE_BYTES_MAX) return CHALLENGE_TOO_LONG;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (bytes.length > CHALLENGE_BYTES_MAX) return CHALLENGE_TOO_LONG;
  const read = readJson(bytes);
  if ("problem" in read) return unreadable(`it has no ${HEADER}, and its body ${read.problem}`);
  const found = challengeIn(read.value);
  if (!found) return unreadable(`it has no ${HEADER}, and its body has neither accepts nor amount`);
  const { value, path } = found;
  if (!("accepts" in value)) return parseSimple(value, path);
  // Some sellers of version 2 put the challenge into the body. The document's own version counts.
  const protocol = value.x402Version === 2 ? 2 : 1;
  return parseProtocol(value, protocol, path);
}

/** The challenge at the top level of a body, or nested under `x402`. `path` comes before its fields' names. */
function challengeIn(body: unknown): { readonly value: JsonObject; readonly path: string } | null {
  if (!isJsonObject(body)) return null;
  if (isChallenge(body)) return { value: body, path: "" };
  const nested = body.x402;
  return isJsonObject(nested) && isChallenge(nested) ? { value: nested, path: "x402." } : null;
}

const isChallenge = (value: JsonObject): boolean =>
  Object.hasOwn(value, "accepts") || Object.hasOwn(value, "amount");

function parseSimple(value: JsonObject, path: string): Challenge | Refusal {
  const { amount, asset, payee } = value;
  const units = parseUnits(amount);
  if (typeof units === "string") return unreadable(`${path}amount ${units}`);
  if (!isText(asset, ASSET))
    return unreadable(`${path}asset must be 1 to 32 characters of A-Z a-z 0-9 . _ : -`);
  if (!isText(payee, PAYEE)) return unreadable(`${path}payee ${NOT_A_PAYEE}`);
  return { kind: "simple", amount: units, asset, payee };
}

const NOT_A_PAYEE = `must be 1 to 512 characters, ${NOTHING_HIDDEN}`;

function parseProtocol(value: JsonObject, protocol: 1 | 2, path: string): Challenge | Refusal {
  const { x402Version = protocol, accepts, resource } = value;
  if (x402Version !== protocol) return unreadable(`${path}x402Version must be ${protocol}`);
  if (!Array.isArray(accepts) || accepts.length === 0) {
    return unreadable(`${path}accepts must be an array of at least one entry`);
  }
  if (accepts.length > ENTRIES_MAX) {
    return unreadable(`${path}accepts must have at most ${ENTRIES_MAX} entries`);
  }
  const read = accepts.map((entry, index) => parseEntry(entry, protocol, `${path}accepts.${index}`));
  const entries = read.filter((entry) => typeof entry !== "string");
  const [problem] = read.filter((entry) => typeof entry === "string");
  if (entries.length === 0) return unreadable(problem ?? "");
  const described = protocol === 2 && isJsonObject(resource) ? resource : null;
  return { kind: "protocol", protocol, resource: described, entries };
}

/** An entry of `accepts`, or what is wrong with it. */
function parseEntry(given: unknown, protocol: 1 | 2, path: string): ChallengeEntry | string {
  if (!isJsonObject(given)) return `${path} must be an object`;
  const { scheme, network, asset, payTo, maxTimeoutSeconds: timeoutSeconds, extra } = given;
  if (!isName(scheme)) return `${path}.scheme ${NOT_A_NAME}`;
  if (!isName(network)) return `${path}.network ${NOT_A_NAME}`;
  const priced = protocol === 1 ? "maxAmountRequired" : "amount";
  const amount = parseUnits(given[priced]);
  if (typeof amount === "string") return `${path}.${priced} ${amount}`;
  if (!isName(asset)) return `${path}.asset ${NOT_A_NAME}`;
  if (!isText(payTo, PAYEE)) return `${path}.payTo ${NOT_A_PAYEE}`;
  if (!isTimeout(timeoutSeconds)) {
    return `${path}.maxTimeoutSeconds must be an integer from 1 to ${TIMEOUT_SECONDS_MAX}`;
  }
  if (extra !== undefined && extra !== null && !isJsonObject(extra)) return `${path}.extra must be an object`;
  return { path, scheme, network, amount, asset, payTo, timeoutSeconds, extra: extra ?? {}, given };
}

/** An amount above zero, or what is wrong with it. */
function parseUnits(value: unknown): bigint | string {
  if (typeof value !== "string" || !/^[0-9]+$/.test(value)) return "must be a string of digits";
  if (value.length > DIGITS_MAX) return `must be at most ${DIGITS_MAX} digits`;
  const amount = BigInt(value);
  return amount > 0n ? amount : "must be greater than zero";
}

const isText = (value: unknown, pattern: RegExp): value is string =>
  typeof value === "string" && pattern.test(value);

const isName = (value: unknown): value is string =>
  typeof value === "string" &&
  value.length > 0 &&
  value.length <= NAME_LENGTH_MAX &&
  !hasHiddenCharacters(value);
const NOT_A_NAME = `must be a string of 1 to ${NAME_LENGTH_MAX} characters, ${NOTHING_HIDDEN}`;

const isTimeout = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= TIMEOUT_SECONDS_MAX;
