import { csvLine } from "../../core/csv.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { addLegs, type Legs, NO_LEGS } from "../../core/postings.ts";
import type { Mode } from "../../core/roles.ts";
import { parseTime } from "../../core/time.ts";
import { type StatementLine, statementLine } from "../../resources/statement.ts";
import type { Context } from "../context.ts";
import { fromCopy } from "../from-copy.ts";
import { type Authority, readableScope } from "./authority.ts";

export type StatementInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  /** The first moment of the period, RFC 3339 with a zone; without it, from the beginning. */
  readonly from?: string;
  /** The moment at which the period ends, which is not in it; without it, now. */
  readonly to?: string;
  /** One asset; without it, all of them, one after the other. */
  readonly asset?: string;
};

/** How many postings are summed, or shown, from one snapshot. */
const SUMMED_AT_ONCE = 5_000;
const LINES_AT_ONCE = 200;

/**
 * Every posting of an organisation and mode in a period, with its cause and the balances after it, asset by asset, in pages. It
 * is read page by page, each from a snapshot of its own: postings are only ever added, so the pages agree.
 */
export async function statementOf(
  given: Context,
  authority: Authority,
  input: StatementInput,
): Promise<AsyncGenerator<readonly StatementLine[]> | Refusal> {
  const [from, to] = [timeOf(input.from, 0), timeOf(input.to, Number.MAX_SAFE_INTEGER)];
  if (from === null) return refuseField("from", "must be a time such as 2026-11-01T00:00:00Z");
  if (to === null) return refuseField("to", "must be a time such as 2026-12-01T00:00:00Z");
  if (from > to) return refuseField("to", "must be after from");
  const ctx = fromCopy(given);
  const found = await ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "viewer", input);
    if (isRefusal(scope)) return scope;
    const all = await reader.history.accounts(scope);
    const accounts = all.filter(({ asset }) => input.asset === undefined || asset === input.asset);
    if (input.asset !== undefined && accounts.length === 0) return refuseUnknownAsset(all);
    return { accounts, newest: await reader.history.postingsSince(Number.MAX_SAFE_INTEGER) };
  });
  return isRefusal(found) ? found : pagesOf(ctx, { ...found, from, to });
}

const NAMED_MAX = 20;

const refuseUnknownAsset = (all: readonly { readonly asset: string }[]): Refusal => {
  const named = all.slice(0, NAMED_MAX).map(({ asset }) => asset);
  return refuseField(
    "asset",
    named.length === 0
      ? "must be an asset that came in; nothing did yet"
      : `must be an asset that came in, such as ${named.join(", ")}`,
  );
};

/** The columns of a CSV file. */
const STATEMENT_COLUMNS = [
  "recorded_at",
  "asset",
  "kind",
  "cause_id",
  "payee",
  "available",
  "held",
  "paid",
  "payable",
  "submitted",
  "available_after",
  "held_after",
  "paid_after",
  "payable_after",
  "submitted_after",
] as const satisfies readonly (keyof StatementLine)[];

export const STATEMENT_FORMATS = ["csv", "jsonl"] as const;
export type StatementFormat = (typeof STATEMENT_FORMATS)[number];

/** What a file begins with. */
export const statementHead = (format: StatementFormat): string =>
  format === "csv" ? csvLine(STATEMENT_COLUMNS) : "";

/** A page of a statement as text. */
export const statementText = (page: readonly StatementLine[], format: StatementFormat): string =>
  format === "jsonl"
    ? page.map((line) => `${JSON.stringify(line)}\n`).join("")
    : page.map((line) => csvLine(STATEMENT_COLUMNS.map((column) => line[column]))).join("");

const timeOf = (text: string | undefined, otherwise: number): number | null =>
  text === undefined ? otherwise : parseTime(text);

type Asked = {
  readonly accounts: readonly { readonly account: number; readonly asset: string }[];
  /** The position of the newest posting of all: none after it is shown. */
  readonly newest: number;
  /** Epoch milliseconds. */
  readonly from: number;
  readonly to: number;
};

async function* pagesOf(
  ctx: Context,
  { accounts, ...period }: Asked,
): AsyncGenerator<readonly StatementLine[]> {
  for (const { account, asset } of accounts) {
    const { first, last } = await edgesOf(ctx, account, period);
    let before: Legs | null = null;
    for (let at = first; ; await othersTurn()) {
      const from = at;
      const postings = await ctx.store.read((reader) =>
        reader.statements.postings(account, from, last, LINES_AT_ONCE),
      );
      if (postings.length === 0) break;
      // An empty period needs no sum of all that was before it.
      let after: Legs = before ?? (await balanceAt(ctx, account, first));
      const lines = postings.map(({ position, ...posting }) => {
        at = position;
        after = addLegs(after, posting.legs);
        return statementLine({ ...posting, asset, after });
      });
      before = after;
      yield lines;
      if (lines.length < LINES_AT_ONCE) break;
    }
  }
}

/**
 * The positions before the first posting of the period, and of its last one. They are those of the account: on several instances,
 * whose clocks differ, only the postings of one organisation's mode are in the order of their times.
 */
const edgesOf = (ctx: Context, account: number, { newest, from, to }: Omit<Asked, "accounts">) =>
  ctx.store.read(async ({ statements }) => ({
    first: from === 0 ? 0 : await statements.since(account, from),
    last: to === Number.MAX_SAFE_INTEGER ? newest : Math.min(newest, await statements.since(account, to)),
  }));

/** Between two reads everybody else is answered, however fast a statement is taken. */
const othersTurn = (): Promise<unknown> => new Promise(setImmediate);

/** The balances of an account after the posting at a position, or before it. */
async function balanceAt(ctx: Context, account: number, until: number): Promise<Legs> {
  let sum = NO_LEGS;
  for (let after = 0; ; await othersTurn()) {
    const from = after;
    const { legs, last } = await ctx.store.read((reader) =>
      reader.statements.sums(account, from, until, SUMMED_AT_ONCE),
    );
    if (last === null) return sum;
    sum = addLegs(sum, legs);
    after = last;
  }
}
