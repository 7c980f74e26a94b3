import { decodeTime, encodeTime } from "ulid";
import { sha256 } from "./canonical.ts";

/** An id is a prefix and a ULID, so ids sort by the time of their creation (docs/concepts, "Identifiers"). */
export const ID_PREFIXES = {
  warrant: "wrt_",
  agent: "agt_",
  spendSession: "ses_",
  verifier: "vrf_",
  schema: "sch_",
  policy: "pol_",
  apiKey: "key_",
  escalation: "esc_",
  check: "chk_",
  user: "usr_",
  organisation: "org_",
  event: "evt_",
  request: "req_",
  webhook: "whk_",
  delivery: "whd_",
  purchase: "pur_",
  deposit: "dep_",
  correction: "cor_",
  payout: "pay_",
  treasuryWatch: "twa_",
  chainTransfer: "trf_",
  instance: "ins_",
  auditEntry: "act_",
  sourceKey: "sky_",
  notice: "ntc_",
  pushSubscription: "psh_",
} as const;

export type Noun = keyof typeof ID_PREFIXES;

/** Makes a new id of a noun. */
export type NewId = (noun: Noun) => string;

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

export const isId = (noun: Noun, text: string): boolean =>
  text.startsWith(ID_PREFIXES[noun]) && ULID.test(text.slice(ID_PREFIXES[noun].length));

/** The 80 random bits of a ULID as two 40-bit halves, which a double holds exactly. */
const HALF = 2 ** 40;

/** The two digits of every number below 1,024, so that an id is written two digits at a time. */
const PAIRS: string[] = [];
for (const upper of CROCKFORD) for (const lower of CROCKFORD) PAIRS.push(upper + lower);

const pairAt = (number: number): string => PAIRS[number & 1_023] ?? "";

function encodeHalf(half: number): string {
  const upper = Math.floor(half / 2 ** 20);
  const lower = half % 2 ** 20;
  return pairAt(upper >> 10) + pairAt(upper) + pairAt(lower >> 10) + pairAt(lower);
}

/**
 * An id that is computed from another id and a salt. It is the same each time, it has the other id's time, and it is as hard
 * to guess as the id and the salt are.
 */
export function derivedId(noun: Noun, from: string, salt: string): string {
  const digest = sha256(`${from} ${salt}`);
  const halves = [digest.slice(0, 10), digest.slice(10, 20)].map((hex) =>
    encodeHalf(Number.parseInt(hex, 16)),
  );
  const time = from.slice(from.indexOf("_") + 1).slice(0, 10);
  return ID_PREFIXES[noun] + time + halves.join("");
}

/** The time in an id, epoch milliseconds. */
export const timeOfId = (id: string): number => decodeTime(id.slice(id.indexOf("_") + 1));

/**
 * A generator of ids. Within the process each id is greater than the one before, even when the clock steps back. Within one
 * millisecond the random part grows by a random step below 2^40. With a step of one, a receipt's address could be guessed
 * from its neighbour's (docs/concepts, "Identifiers").
 *
 * @param now epoch milliseconds
 * @param random40 a uniform random integer below 2^40, from a cryptographic source
 * @param newestTime the time in the newest id that any process has made before: new ids come after it
 */
export function createIds(now: () => number, random40: () => number, newestTime = -1): NewId {
  let time = -1;
  let timeText = "";
  let high = 0;
  let low = 0;
  return (noun) => {
    const current = Math.max(now(), newestTime + 1);
    if (current > time) {
      time = current;
      timeText = encodeTime(time, 10);
      // The top bit stays clear, so that no number of steps in a millisecond can overflow.
      high = random40() % (HALF / 2);
      low = random40();
    } else {
      low += Math.max(2, random40());
      if (low >= HALF) {
        low -= HALF;
        high += 1;
      }
    }
    return ID_PREFIXES[noun] + timeText + encodeHalf(high) + encodeHalf(low);
  };
}
