import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { DAY_MS } from "../../core/time.ts";
import type { Failure, Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import type { Context } from "../context.ts";

/** What the overview draws: the money that was held, paid and returned on each of the last days, and why checks failed. */
export type Pictures = {
  /** One for each asset. */
  readonly money: readonly { readonly asset: string; readonly days: readonly DayOfMoney[] }[];
  /** How many checks failed for a reason, the most frequent first. */
  readonly failures: readonly { readonly code: string; readonly count: number }[];
  /** Whether there is more to read. Who asks again gets further. */
  readonly isPartial: boolean;
};

/** Amounts in the smallest unit, as numbers: a picture needs no last digit. `day` counts from 1970. */
export type DayOfMoney = Readonly<Record<"day" | "held" | "paid" | "returned", number>>;

const DAYS_DRAWN = 30;
/** How many rows are read for one page at most, so that no page waits for all of them. */
const ROWS_READ_MAX = 2_000;
/** How many accounts, and how many organisations and modes, are remembered. */
const REMEMBERED_MAX = 1_000;

type Account = { after: number; isPartial: boolean; readonly days: Map<number, DayOfMoney> };
type Counts = Map<number, Map<string, number>>;

export type History = ReturnType<typeof createHistory>;

/**
 * Remembers what was read, so that each posting and each check is read once, and a page reads only what came since. After a
 * restart it is read again from the ledger.
 */
export function createHistory() {
  const accounts = new Map<number, Account>();
  const failures = new Map<string, Counts>();
  let checks: { after: number; isPartial: boolean } | null = null;
  // Two pages at once would count the same rows twice.
  let last: Promise<unknown> = Promise.resolve();

  async function readAccount(reader: Reader, account: number, first: number): Promise<Account> {
    const kept = accounts.get(account) ?? {
      ...{ after: await reader.history.postingsSince(first * DAY_MS), isPartial: true },
      days: new Map<number, DayOfMoney>(),
    };
    accounts.delete(account);
    remember(accounts, account, kept);
    let rows = 0;
    for (const { count, last: position, ...day } of await reader.history.movements(
      account,
      kept.after,
      ROWS_READ_MAX,
    )) {
      rows += count;
      kept.after = Math.max(kept.after, position);
      const { held, paid, returned } = kept.days.get(day.day) ?? NOTHING;
      const sums = { held: held + day.held, paid: paid + day.paid, returned: returned + day.returned };
      kept.days.set(day.day, { day: day.day, ...sums });
    }
    for (const day of kept.days.keys()) if (day < first) kept.days.delete(day);
    kept.isPartial = rows === ROWS_READ_MAX;
    return kept;
  }

  async function readFailures(reader: Reader, first: number): Promise<boolean> {
    checks ??= { after: await reader.history.checksSince(first * DAY_MS), isPartial: true };
    let rows = 0;
    for (const failure of await reader.history.failures(checks.after, ROWS_READ_MAX)) {
      rows += failure.count;
      checks.after = Math.max(checks.after, failure.last);
      addFailure(failures, failure);
    }
    for (const counts of failures.values())
      for (const day of counts.keys()) if (day < first) counts.delete(day);
    return rows === ROWS_READ_MAX;
  }

  async function readNow(ctx: Context, caller: Caller): Promise<Pictures> {
    const today = Math.floor(ctx.now() / DAY_MS);
    const first = today - DAYS_DRAWN + 1;
    return ctx.store.read(async (reader) => {
      const money: Pictures["money"][number][] = [];
      let isPartial = await readFailures(reader, first);
      for (const { account, asset } of await reader.history.accounts(caller)) {
        const kept = await readAccount(reader, account, first);
        isPartial ||= kept.isPartial;
        money.push({ asset, days: lastDays(kept.days, first) });
      }
      return { money, failures: byReason(failures.get(keyOf(caller))), isPartial };
    });
  }

  return {
    async read(ctx: Context, caller: Caller) {
      const refused = refuseAccess(caller, ACCESS.readConsole);
      if (refused) return refused;
      const reading = last.then(() => readNow(ctx, caller));
      last = reading.catch(() => null);
      return reading;
    },
  };
}

const NOTHING = { held: 0, paid: 0, returned: 0 };

const keyOf = ({ organisationId, mode }: Scope): string => `${organisationId} ${mode}`;

/** Keeps a value, and forgets the one that was asked for longest ago where there are too many. */
function remember<Key, Value>(kept: Map<Key, Value>, key: Key, value: Value): void {
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > REMEMBERED_MAX && oldest !== undefined) kept.delete(oldest);
}

const lastDays = (days: ReadonlyMap<number, DayOfMoney>, first: number): readonly DayOfMoney[] =>
  Array.from({ length: DAYS_DRAWN }, (_, at) => days.get(first + at) ?? { day: first + at, ...NOTHING });

function addFailure(failures: Map<string, Counts>, { day, codes, count, ...scope }: Failure): void {
  if (codes.length === 0) return;
  const key = keyOf(scope);
  const counts: Counts = failures.get(key) ?? new Map();
  const ofDay = counts.get(day) ?? new Map<string, number>();
  for (const code of codes) ofDay.set(code, (ofDay.get(code) ?? 0) + count);
  counts.set(day, ofDay);
  failures.set(key, counts);
}

function byReason(counts: Counts | undefined): Pictures["failures"] {
  const sums = new Map<string, number>();
  for (const ofDay of counts?.values() ?? []) {
    for (const [code, count] of ofDay) sums.set(code, (sums.get(code) ?? 0) + count);
  }
  return [...sums]
    .map(([code, count]) => ({ code, count }))
    .toSorted((one, other) => other.count - one.count);
}
