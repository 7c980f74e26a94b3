import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuditEntry } from "../core/audit-entry.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { DecidedCheck } from "../core/back-test.ts";
import type { Capsule } from "../core/capsule.ts";
import type { ChainPlace } from "../core/chain-anchor.ts";
import type { TransactionKey, WalletOfChain, WalletTransaction } from "../core/chain-transaction.ts";
import type { Check } from "../core/check.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { LogCheckpoint, LogPlace } from "../core/log.ts";
import type { Hash } from "../core/merkle.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance } from "../core/postings.ts";
import type { Mode } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import type { Owed } from "../core/solvency/owed.ts";
import type { SourceKey } from "../core/source-key.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { User } from "../core/user.ts";
import type { State, Warrant } from "../core/warrant.ts";
import type { Cosignature, WitnessedLog } from "../core/witness.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import type { ChainTransfersReader } from "./chain-transfers-reader.ts";
import type { DeliveriesReader } from "./deliveries-reader.ts";
import type { PayoutsReader } from "./payouts-reader.ts";
import type { RailsReader } from "./rails-reader.ts";
import type { RulesReader } from "./rules-reader.ts";
import type { Part, Scope } from "./scope.ts";
import type { SolvencyReader } from "./solvency-reader.ts";

/** The sums over all organisations. What is payable and submitted is a part of what is paid. */
export type BalanceTotal = Pick<Owed, "payable" | "submitted"> & {
  readonly mode: Mode;
  readonly asset: string;
  readonly balance: Balance;
};
/** The postings of an account on one day. */
export type Movement = {
  /** Days since 1970, in UTC. */
  readonly day: number;
  /** What was held, and of what was held what was paid and what returned. Sums in floating point. */
  readonly held: number;
  readonly paid: number;
  readonly returned: number;
  readonly count: number;
  /** The position of the last posting in it. */
  readonly last: number;
};

/** The checks of an organisation and mode on one day that failed for the same reasons; for none where they passed. */
export type Failure = Scope & {
  readonly day: number;
  readonly codes: readonly string[];
  readonly count: number;
  readonly last: number;
};

/** A page of checks, and where it ended; null where there is nothing older. */
export type DecidedChecks = { readonly checks: readonly DecidedCheck[]; readonly last: number | null };
/** Where a page begins: with those older than a row, or with the next newer ones. Neither: with the newest. */
export type Cursor = { readonly olderThan?: string; readonly newerThan?: string };

/** A place in the list of escalations: of one that had this status. */
export type EscalationPlace = Pick<Escalation, "status" | "id">;

export type WarrantFilter = { readonly state?: State; readonly agentId?: string };

/**
 * Reads that are not part of a command, from one snapshot. They never see half a Change, and never delay the
 * writer.
 */
export interface Reader
  extends RulesReader,
    DeliveriesReader,
    PayoutsReader,
    ChainTransfersReader,
    RailsReader {
  readonly warrants: {
    get(scope: Scope, id: string): Promise<Warrant | null>;
    /** A warrant of any organisation, for the public receipt. */
    find(id: string): Promise<Warrant | null>;
    /** The soonest deadline first. `offset` rows are skipped. */
    byDeadline(
      scope: Scope,
      filter: WarrantFilter,
      offset: number,
      limit: number,
    ): Promise<readonly Warrant[]>;
    /** Newest first. With `olderThan`, only older ones; with `newerThan`, the next newer ones. */
    byCreation(
      scope: Scope,
      filter: WarrantFilter,
      cursor: Cursor,
      limit: number,
    ): Promise<readonly Warrant[]>;
    /** Held warrants that expire now, of all organisations, soonest first. */
    overdue(now: number, limit: number): Promise<readonly Warrant[]>;
    overdueCount(now: number): Promise<number>;
    /** How many warrants are in each state, in all organisations. */
    countsByState(): Promise<Readonly<Partial<Record<State, number>>>>;
    /** The ids of settled warrants of all organisations, at most this many, spread over all of them. */
    someSettled(warrantsMax: number): Promise<readonly string[]>;
    /**
     * Warrants of all organisations whose check is running or was interrupted, in order of id, after the
     * given one.
     */
    verifying(afterId: string, limit: number): Promise<readonly Warrant[]>;
    /** Those that expire later than that, the soonest deadline first. */
    ofAgent(
      agentId: string,
      state: "held" | "frozen",
      expiresAfter: number,
      limit: number,
    ): Promise<readonly Warrant[]>;
    /** The number and the sum of the first `limit` of these warrants, for each asset. */
    sumsOfAgent(
      agentId: string,
      state: "held" | "frozen",
      expiresAfter: number,
      limit: number,
    ): Promise<readonly { readonly asset: string; readonly count: number; readonly amount: bigint }[]>;
  };
  readonly trace: {
    /** Oldest first. */
    of(warrantId: string): Promise<readonly TraceEntry[]>;
    entry(warrantId: string, sequence: number): Promise<TraceEntry | null>;
  };
  readonly solvency: SolvencyReader;
  /** The log: the Merkle tree whose leaves are the entries of all traces, and the statements of solvency. */
  readonly log: {
    /** How many leaves it has. */
    size(): Promise<number>;
    root(size: number): Promise<Hash>;
    inclusionProof(index: number, size: number): Promise<readonly Hash[]>;
    consistencyProof(from: number, to: number): Promise<readonly Hash[]>;
    /** The first `width` hashes of a tile; null where it has fewer. */
    tile(level: number, index: number, width: number): Promise<Uint8Array | null>;
    /** The entry hashes of the leaves from this one on; fewer where the log ends. */
    entryHashes(first: number, limit: number): Promise<readonly Hash[]>;
    newestCheckpoint(): Promise<LogCheckpoint | null>;
    /** The first checkpoint of at least this size. */
    checkpointOf(size: number): Promise<LogCheckpoint | null>;
    /** In order of their numbers, after the given one. */
    checkpointsAfter(number: number, limit: number): Promise<readonly LogCheckpoint[]>;
    /** Where the entries of a warrant's trace are, in their order. */
    placesOf(warrantId: string): Promise<readonly LogPlace[]>;
  };
  readonly checks: {
    of(warrantId: string): Promise<readonly Check[]>;
    /** A check of any organisation, by its id. */
    find(id: string): Promise<Check | null>;
    /**
     * The checks of the newest warrants, of an organisation and mode or of one agent there, newest first. It looks at `limit`
     * warrants at most, of which people may have settled some without a check.
     *
     * @param before where the last page ended; null for the first
     */
    decided(
      scope: Scope,
      agentId: string | null,
      before: number | null,
      limit: number,
    ): Promise<DecidedChecks>;
  };
  /** Escalations that wait for a person come first, the longest waiting at the top. */
  readonly escalations: {
    get(id: string): Promise<Escalation | null>;
    /** @param after null, or not given: from the first one on */
    list(scope: Scope, limit: number, after?: EscalationPlace | null): Promise<readonly Escalation[]>;
    /** The one of a warrant that waits for a person; null where none does. */
    waitingOf(warrantId: string): Promise<Escalation | null>;
    /**
     * Escalations of all organisations that wait for a person and were raised before a time, the longest
     * waiting first.
     */
    waiting(before: number, after: Escalation | null, limit: number): Promise<readonly Escalation[]>;
    /**
     * When the oldest waiting escalation of all organisations was raised, epoch milliseconds; null where none
     * waits.
     */
    oldestWaitingAt(): Promise<number | null>;
  };
  readonly agents: {
    get(id: string): Promise<Agent | null>;
    /** In the order of ids; all of them where no part is asked for. */
    list(scope: Scope, part?: Part): Promise<readonly Agent[]>;
    /** Newest first. */
    page(scope: Scope, cursor: Cursor, limit: number): Promise<readonly Agent[]>;
    /** Killed ones that still hold warrants, and active ones with frozen ones that have not expired, of all organisations. */
    withStatusToFollow(now: number, limit: number): Promise<readonly Agent[]>;
    liveSession(agentId: string, now: number): Promise<SpendSession | null>;
    /** A session of any organisation, by its id. */
    session(id: string): Promise<SpendSession | null>;
    /** Live or ended, newest first. */
    sessions(agentId: string, cursor: Cursor, limit: number): Promise<readonly SpendSession[]>;
    /** The running total of a session that has windows, at a time (`SpendSession.amountHeld`). */
    heldUntil(sessionId: string, at: number): Promise<bigint>;
    countsByState(agent: Agent): Promise<Readonly<Partial<Record<State, number>>>>;
    ownPolicy(agentId: string): Promise<Policy | null>;
  };
  readonly organisations: {
    get(id: string): Promise<Organisation | null>;
    list(): Promise<readonly Organisation[]>;
    /** Whether there is one. */
    any(): Promise<boolean>;
  };
  readonly users: {
    /** A removed person is found too. */
    get(id: string): Promise<User | null>;
    byEmail(email: string): Promise<User | null>;
    /** In the order of ids; all of them where no part is asked for. */
    list(organisationId: string, part?: Part): Promise<readonly User[]>;
  };
  readonly passkeys: {
    get(id: string): Promise<Passkey | null>;
    of(userId: string): Promise<readonly Passkey[]>;
  };
  readonly passwordResets: { byHash(tokenHash: string): Promise<PasswordReset | null> };
  readonly apiKeys: {
    byHash(secretHash: string): Promise<ApiKey | null>;
    get(id: string): Promise<ApiKey | null>;
    /** In the order of ids; all of them where no part is asked for. */
    list(scope: Scope, part?: Part): Promise<readonly ApiKey[]>;
    /** Newest first. */
    ofAgent(agentId: string, cursor: Cursor, limit: number): Promise<readonly ApiKey[]>;
  };
  /** Newest first, those older than the given one. */
  readonly auditEntries: {
    list(organisationId: string, olderThan: string | null, limit: number): Promise<readonly AuditEntry[]>;
  };
  readonly authSessions: {
    byHash(tokenHash: string): Promise<AuthSession | null>;
    /** Those that end later than a time, the last to end first. */
    of(userId: string, now: number, limit: number): Promise<readonly AuthSession[]>;
    /** Whether a sign-in of the person from this network is remembered. Old ones are forgotten. */
    hasBeenFrom(userId: string, network: string): Promise<boolean>;
    /** When the person last signed in, epoch milliseconds; null where no sign-in is remembered. */
    lastSignInOf(userId: string): Promise<number | null>;
  };
  readonly instance: { get(): Promise<Instance> };
  readonly purchases: {
    get(id: string): Promise<Purchase | null>;
    /** Newest first, those older than the given one. */
    list(scope: Scope, olderThan: string | null, limit: number): Promise<readonly Purchase[]>;
    /** Unfinished purchases of all organisations, in order of id, after the given one. */
    unfinished(afterId: string, limit: number): Promise<readonly Purchase[]>;
    /**
     * Purchases whose next question to the chain is due now, or later than `latest`. No question is planned so late, so a clock that was ahead has written it.
     */
    toCheck(now: number, latest: number, limit: number): Promise<readonly Purchase[]>;
    /**
     * Purchases that have ended and keep content that is old: bought before a time, or free and ended before a
     * time or (by a clock that was ahead) after now.
     */
    withOldContent(
      old: { readonly boughtBefore: number; readonly freeBefore: number; readonly now: number },
      limit: number,
    ): Promise<readonly Purchase[]>;
    /**
     * How many purchases are unfinished, how many payments are unknown and when the next question about them
     * is due, epoch milliseconds; and of how many the chain contradicts the person who attested them, and nobody has acknowledged it.
     */
    waiting(): Promise<{
      readonly unfinished: number;
      readonly unknown: number;
      readonly nextCheckAt: number | null;
      readonly contradicted: number;
    }>;
  };
  readonly contents: {
    get(hash: string): Promise<Uint8Array | null>;
    /** Its length in bytes, at the cost of a look-up. */
    length(hash: string): Promise<number | null>;
  };
  /** The keys of sources that were registered and not removed. */
  readonly sourceKeys: {
    get(id: string): Promise<SourceKey | null>;
    list(organisationId: string): Promise<readonly SourceKey[]>;
    of(organisationId: string, origin: string): Promise<readonly SourceKey[]>;
  };
  readonly capsules: {
    get(checkId: string): Promise<Capsule | null>;
    /** The stored body of a capsule: compressed, in its parts, or as a purchase has stored it. Null where it is missing. */
    body(capsule: Capsule): Promise<{ readonly bytes: Uint8Array; readonly isCompressed: boolean } | null>;
    /** The organisations and modes that have capsules which were made before a time. */
    scopesWithOld(createdBefore: number, limit: number): Promise<readonly Scope[]>;
  };
  readonly balances: {
    totals(): Promise<readonly BalanceTotal[]>;
    list(scope: Scope): Promise<readonly { readonly asset: string; readonly balance: Balance }[]>;
  };
  /** What happened, for pictures, in the order of positions. Who reads on from the last one reads each row once. */
  readonly history: {
    /** The position before the first posting, or check, of this time or later. */
    postingsSince(time: number): Promise<number>;
    checksSince(time: number): Promise<number>;
    accounts(scope: Scope): Promise<readonly { readonly account: number; readonly asset: string }[]>;
    /** The next postings of an account, `limit` at most, summed by day. */
    movements(account: number, after: number, limit: number): Promise<readonly Movement[]>;
    /** The next checks of all organisations, `limit` at most, counted by day and reasons. */
    failures(after: number, limit: number): Promise<readonly Failure[]>;
  };
  readonly witnessedLogs: {
    get(origin: string): Promise<WitnessedLog | null>;
    /** All of them, in the order of their origins: there are as many as the operator has named. */
    list(): Promise<readonly WitnessedLog[]>;
  };
  readonly cosignatures: {
    /** Those on the checkpoint of a size, in the order of the witnesses' names, as many as a note may have. */
    of(size: number): Promise<readonly Cosignature[]>;
    /**
     * Which checkpoint of at least this size to show: the size of the first that all of these witnesses signed; else of the first
     * that most of them signed, where one may be by others alone. It looks at no more than the next thousand signatures. Null
     * where there is none.
     */
    bestSize(size: number, witnesses: readonly string[]): Promise<number | null>;
    count(): Promise<number>;
    /** Those after this one, in the order of sizes and names. */
    after(size: number, witness: string, limit: number): Promise<readonly Cosignature[]>;
    /** Those of a witness on checkpoints below a size, the largest checkpoint first. */
    below(witness: string, size: number, limit: number): Promise<readonly Cosignature[]>;
  };
  /** What the instance's own wallets have sent to chains. */
  readonly chainTransactions: {
    /** Those that are open, in the order of nonces: a chain takes them in this order. */
    open(of: WalletOfChain, limit: number): Promise<readonly WalletTransaction[]>;
    /** The one with the highest nonce. */
    newest(of: WalletOfChain): Promise<WalletTransaction | null>;
    /** The confirmed one with the highest nonce. */
    lastConfirmed(of: WalletOfChain): Promise<WalletTransaction | null>;
    /** Those of all wallets, in order of their keys, after the given one. */
    after(last: TransactionKey | null, limit: number): Promise<readonly WalletTransaction[]>;
  };
  readonly logAnchors: {
    /** The smallest anchored checkpoint of at least this size, among those that a chain has confirmed. */
    firstConfirmed(size: number): Promise<(ChainPlace & { readonly size: number }) | null>;
    /** The largest size of the log that a chain has confirmed; 0 where there is none. */
    sizeOn(chainId: number): Promise<number>;
    /** The same of any chain. */
    confirmedSize(): Promise<number>;
  };
}
