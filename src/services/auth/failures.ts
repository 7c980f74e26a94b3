import type { SignInMeans } from "../../core/auth-session.ts";
import { HOUR_MS } from "../../core/time.ts";
import type { FailedSignIn } from "../../platform/sign-in-log.ts";

/** Failures of one account that the audit log gets as one entry. */
export type FailureEntry = {
  readonly userId: string;
  readonly organisationId: string;
  readonly failures: number;
  /** The first few networks. */
  readonly networks: readonly string[];
  /** Of the last failure. */
  readonly network: string;
  readonly agent: string;
  readonly by: SignInMeans;
  readonly why: FailedSignIn["why"];
  readonly firstAt: number;
  readonly lastAt: number;
};

/**
 * Failed sign-ins on their way into the audit log, in process memory until a job writes them: an answer that waited for the
 * disk would show that the account exists. Strangers cannot fill the disk: of an account and hour the first ten have an entry
 * each, all later ones one together.
 */
export type SignInFailures = {
  /** Failures of no account are not recorded: the audit log belongs to an organisation. */
  record(failure: FailedSignIn, now: number): void;
  /** Takes out the entries that are to be written; with `all`, also the sums whose hour is not over. */
  take(now: number, all?: boolean): readonly FailureEntry[];
  /** Puts back entries that could not be written. */
  putBack(entries: readonly FailureEntry[]): void;
};

export type FailureLimits = {
  /** Entries of one failure each, in an hour: of one account, and of all. */
  readonly ofAccount: number;
  readonly inAll: number;
  /** Accounts of which failures are kept. All others are in the server's log alone. */
  readonly accounts: number;
};

const LIMITS: FailureLimits = { ofAccount: 10, inAll: 1_000, accounts: 10_000 };
const NETWORKS_MAX = 5;

type OfAccount = { readonly endsAt: number; entries: number; sum: FailureEntry | null };

export function createSignInFailures(limits: FailureLimits = LIMITS): SignInFailures {
  const accounts = new Map<string, OfAccount>();
  let pending: FailureEntry[] = [];
  let hour = { endsAt: 0, entries: 0 };

  function endHours(now: number, all: boolean): void {
    for (const [userId, { endsAt, sum }] of accounts) {
      if (!all && !isOver(endsAt, now)) continue;
      if (sum) pending.push(sum);
      accounts.delete(userId);
    }
  }

  function accountOf(userId: string, now: number): OfAccount | null {
    const known = accounts.get(userId);
    if (known && !isOver(known.endsAt, now)) return known;
    if (known?.sum) pending.push(known.sum);
    if (!known && accounts.size >= limits.accounts) return null;
    const fresh = { endsAt: now + HOUR_MS, entries: 0, sum: null };
    accounts.set(userId, fresh);
    return fresh;
  }

  return {
    record(failure, now) {
      if (failure.user === null) return;
      const account = accountOf(failure.user.id, now);
      if (account === null) return;
      if (isOver(hour.endsAt, now)) hour = { endsAt: now + HOUR_MS, entries: 0 };
      const entry = entryOf(failure, failure.user, now);
      if (account.entries < limits.ofAccount && hour.entries < limits.inAll) {
        account.entries += 1;
        hour.entries += 1;
        pending.push(entry);
      } else {
        account.sum = account.sum === null ? entry : together(account.sum, entry);
      }
    },
    take(now, all = false) {
      endHours(now, all);
      const taken = pending;
      pending = [];
      return taken;
    },
    putBack(entries) {
      // On a disk that stays full, what is newer is left out.
      pending = [...entries, ...pending].slice(0, limits.inAll + limits.accounts);
    },
  };
}

/** An hour that ends further ahead than it is long was begun by a clock that was wrong. */
const isOver = (endsAt: number, now: number): boolean => endsAt <= now || endsAt > now + HOUR_MS;

const entryOf = (
  { client: { network, agent }, by, why }: FailedSignIn,
  { id, organisationId }: NonNullable<FailedSignIn["user"]>,
  now: number,
): FailureEntry => ({
  ...{ userId: id, organisationId, failures: 1, networks: [network] },
  ...{ network, agent, by, why, firstAt: now, lastAt: now },
});

const together = (sum: FailureEntry, last: FailureEntry): FailureEntry => ({
  ...last,
  failures: sum.failures + last.failures,
  networks: [...new Set([...sum.networks, last.network])].slice(0, NETWORKS_MAX),
  firstAt: sum.firstAt,
});
