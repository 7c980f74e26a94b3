import type { NewestBackup } from "../core/backup-schedule.ts";
import type { DatabaseFigures, ReplicaFigures } from "../core/database.ts";
import type { AuditOutcome, JobState } from "../core/operation.ts";
import type { SeenTreasury } from "../core/solvency/judgement.ts";

/**
 * Figures that are read when somebody asks for the metrics; `counters.ts` has those that are counted. All
 * times are epoch milliseconds.
 */
export type Figures = {
  readonly warrantsByState: Readonly<Record<string, number>>;
  readonly warrantsOverdue: number;
  /** In the asset's smallest unit. `state` is `available`, `held` or `paid`, or a part of that: `payable` or `submitted`. */
  readonly money: readonly {
    readonly mode: string;
    readonly asset: string;
    readonly state: string;
    readonly amount: bigint;
  }[];
  readonly escalations: { readonly count: number; readonly oldestMs: number };
  /** Since this process started. */
  readonly capsulesNotKept: number;
  /** `exhausted` and `notSent` count since this process started. */
  readonly deliveries: {
    readonly waiting: number;
    readonly lateMs: number;
    readonly exhausted: number;
    readonly notSent: number;
  };
  /**
   * `unfinished`: purchases that have not ended. `unknown`: payments whose outcome is still unknown.
   * `contradicted`: payments of which the chain says otherwise than the person who attested them.
   */
  readonly purchases: {
    readonly unfinished: number;
    readonly unknown: number;
    readonly lateMs: number;
    readonly contradicted: number;
  };
  readonly jobs: readonly JobState[];
  /** Of checks and purchases. */
  readonly places: readonly { readonly mode: string; readonly taken: number; readonly waiting: number }[];
  readonly evaluators: readonly {
    readonly pool: string;
    readonly size: number;
    readonly busy: number;
    readonly waiting: number;
    readonly restarts: number;
  }[];
  readonly audit: AuditOutcome | null;
  readonly freeBytes: number | null;
  /** The newest nightly backup. Null without a backup folder, and until it was read. */
  readonly newestBackup: NewestBackup | null;
  /** Of each configured witness. Its failures are counted by kind, since this process started. */
  readonly witnesses: readonly {
    readonly witness: string;
    /** Whether it has signed the newest checkpoint; null before the first. */
    readonly hasSigned: boolean | null;
    readonly failures: Readonly<Record<string, number>>;
  }[];
  /** Of each token that payouts are sent with: whether they have stopped until the operator resumes them. */
  readonly rails: readonly {
    readonly mode: string;
    readonly asset: string;
    readonly stopped: boolean;
    readonly underWay: number;
    /** How many payees wait for what. */
    readonly waiting: Readonly<Record<string, number>>;
  }[];
  /** Of the deposits of each treasury on a chain. */
  readonly deposits: readonly {
    readonly mode: string;
    readonly asset: string;
    /** Confirmed blocks that were not looked at; null before the chain answered. */
    readonly blocksBehind: number | null;
    /** For how long its deposits have not been found up to the newest confirmed block. */
    readonly lateMs: number;
    readonly stopped: boolean;
    /** Transfers that came in and are nobody's deposits. */
    readonly unassigned: number;
    /** Deposits that a reorganisation took out of the chain. */
    readonly gone: number;
  }[];
  /** Connections closed since they were over a limit, since this process started. */
  readonly connectionsClosed: number;
  /** For how long an anchor of the log on a chain is late; null where there are none. */
  readonly anchorLateMs: number | null;
  /** How many entries of the log no chain has confirmed. */
  readonly leavesToAnchor: number;
  /** What the wallets on chains hold of each token, as it was seen last. */
  readonly treasuries: readonly SeenTreasury[];
  /** Null where the ledger is in the data folder. */
  readonly database: DatabaseFigures | null;
  /** Of the database, as its server reports them. */
  readonly replicas: readonly ReplicaFigures[];
  readonly ready: boolean;
  /** Whether the clock is behind the ledger's last commit, or has jumped. */
  readonly clockDisagrees: boolean;
};
