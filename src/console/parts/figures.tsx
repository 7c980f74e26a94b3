/** @jsxImportSource hono/jsx */
import { printable } from "../../core/hidden-characters.ts";
import { displayAmount, exactAmount } from "../../core/money.ts";
import { isoTime } from "../../core/time.ts";
import type { State } from "../../core/warrant.ts";
import { capital } from "../capital.ts";

/** Values as people read them: amounts, times, states, and text that others wrote. */

/** Text that others wrote: hidden characters are written out, and it is isolated from the direction of the text around it. */
export const Text = ({ of }: { of: string }) => <bdi>{printable(of)}</bdi>;

/** The same on one line, as in a table: what does not fit is cut. The script shows it on hover. */
export const Line = ({ of }: { of: string }) => <bdi class="line">{printable(of)}</bdi>;

type AmountProps = { of: bigint; asset: string };

/** Between the digits and the asset. */
const LAST_SPACE = / (?=[^ ]+$)/;

/** An amount in units. On hover it says the exact digits, as the API has them. */
export const Amount = ({ of, asset }: AmountProps) => (
  <span class="amount" title={exactAmount(of, asset)}>
    {displayAmount(of, asset).replace(LAST_SPACE, "\u00a0")}
  </span>
);

/** The same as a figure that stands alone: its digits are large and on one line, and its asset is not. */
export const BigAmount = ({ of, asset }: AmountProps) => (
  <span class="amount big" title={exactAmount(of, asset)}>
    {displayAmount(of, asset).split(LAST_SPACE)[0]?.replaceAll(" ", "\u00a0")} <small>{asset}</small>
  </span>
);

const UTC = new Intl.DateTimeFormat("en-GB", {
  ...{ timeZone: "UTC", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" },
});

/** A time. The script writes it in the zone of whoever reads; on hover it is in UTC. */
export const Time = ({ at }: { at: number }) => (
  <time datetime={isoTime(at)} title={`${isoTime(at).replace("T", " ").slice(0, 19)} UTC`}>
    {UTC.format(at)} UTC
  </time>
);

export const STATE_WORDS: Readonly<Record<State, string>> = {
  held: "Held",
  verifying: "Verifying",
  released: "Released",
  partially_released: "Partially released",
  escalated: "Escalated",
  refunded: "Refunded",
  expired: "Expired",
  frozen: "Frozen",
  disputed: "Disputed",
};

/** What something is, in a word or two. */
export const Badge = ({ of, look, role }: { of: string; look?: string; role?: "status" }) => (
  <span class={look ? `badge ${look}` : "badge"} role={role}>
    {capital(of)}
  </span>
);

export const StateBadge = ({ state }: { state: State }) => <Badge look={state} of={STATE_WORDS[state]} />;

/** Whether a clause passed. */
export const Passed = ({ of }: { of: boolean }) => (
  <Badge look={of ? "pass" : "fail"} of={of ? "passed" : "failed"} />
);

/** `status_mismatch` → status mismatch. The code itself is what the API has, so it shows on hover. */
export const Reason = ({ code }: { code: string }) => (
  <span class="reason" title={code}>
    {code.replaceAll("_", " ")}
  </span>
);

/** An id or a hash, which people copy and do not read. */
export const Id = ({ of }: { of: string }) => <code class="id">{of}</code>;

/** A share in basis points: 2500 → 25 %. */
export const percent = (bps: number): string => `${bps / 100} %`;

/** A sentence of ours that names fields between backquotes. */
export const Sentence = ({ of }: { of: string }) => (
  <>{of.split("`").map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>
);
