import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Capsule } from "../core/capsule.ts";
import type { WalletTransaction } from "../core/chain-transaction.ts";
import type { ChainTransfer } from "../core/chain-transfer.ts";
import type { Correction } from "../core/correction.ts";
import type { Deposit } from "../core/deposit.ts";
import type { DepositSender } from "../core/deposit-sender.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { MessagingAccount, MessagingCode } from "../core/messaging.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Notice, NoticeSettings, PlannedNotice } from "../core/notice.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey, PasskeyApproval } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Payout } from "../core/payout.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance, PayeeBalance } from "../core/postings.ts";
import type { PushSubscription } from "../core/push.ts";
import type { PayoutTransaction, PayoutWait, RailState } from "../core/rail.ts";
import type { SpendSession } from "../core/session.ts";
import type { SourceKey } from "../core/source-key.ts";
import type { TraceStep } from "../core/trace.ts";
import type { TreasuryWatch } from "../core/treasury-watch.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Cosignature, WitnessedLog } from "../core/witness.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import type { IdempotencyKey } from "./rows.ts";

/**
 * The rows and indexes that needs are looked up in. One that is not loaded gives undefined, and is noted as
 * missing.
 */
export type View = {
  /** The batch's time by a clock that never jumps (see `BatchTime`). */
  readonly steadyAt: number;
  /** The batch's time for new records (see `BatchTime`). */
  readonly recordedAt: number;
  /** How many commands share the batch. */
  readonly together: number;
  row<Kind extends LoadedKind>(kind: Kind, key: string): LoadedRows[Kind] | null | undefined;
  index<Name extends IndexName>(
    name: Name,
    ...of: IndexTable[Name]["of"]
  ): IndexTable[Name]["gives"] | undefined;
};

/** Kinds of rows that are looked up by their key. */
export type LoadedRows = {
  readonly agent: Agent;
  readonly apiKey: ApiKey;
  readonly authSession: AuthSession;
  /** The engine computes it from the postings. */
  readonly balance: Balance;
  readonly capsule: Capsule;
  readonly chainTransaction: WalletTransaction;
  readonly chainTransfer: ChainTransfer;
  readonly correction: Correction;
  readonly cosignature: Cosignature;
  readonly delivery: WebhookDelivery;
  readonly deposit: Deposit;
  readonly depositSender: DepositSender;
  readonly escalation: Escalation;
  readonly idempotencyKey: IdempotencyKey;
  readonly instance: Instance;
  readonly messagingAccount: MessagingAccount;
  readonly messagingCode: MessagingCode;
  readonly notice: Notice;
  readonly noticeSettings: NoticeSettings;
  readonly organisation: Organisation;
  readonly passkey: Passkey;
  readonly passkeyApproval: PasskeyApproval;
  readonly passwordReset: PasswordReset;
  /** The engine computes it from the postings. */
  readonly payeeBalance: PayeeBalance;
  readonly payout: Payout;
  readonly payoutTransaction: PayoutTransaction;
  readonly payoutWait: PayoutWait;
  readonly plannedNotice: PlannedNotice;
  readonly policy: Policy;
  readonly purchase: Purchase;
  readonly pushSubscription: PushSubscription;
  readonly railState: RailState;
  readonly schema: NamedSchema;
  readonly sourceKey: SourceKey;
  readonly spendSession: SpendSession;
  readonly traceStep: TraceStep;
  readonly treasuryWatch: TreasuryWatch;
  readonly user: User;
  readonly verifier: SavedVerifier;
  readonly warrant: Warrant;
  readonly webhook: WebhookEndpoint;
  readonly witnessedLog: WitnessedLog;
};
export type LoadedKind = keyof LoadedRows;

type Index<Of extends readonly (string | number | null)[], Gives> = {
  readonly of: Of;
  readonly gives: Gives;
};
type Id = string | null;
type Ids = readonly string[];

/** The oldest capsules of a scope, as many as are known. */
type OldestCapsules = {
  readonly ids: Ids;
  /** Whether the scope has no others. */
  readonly isAll: boolean;
  /** Whether this batch has deleted some. */
  readonly isShortened: boolean;
};

/** Look-ups other than by a row's key. They give keys of rows, or a fact. */
export type IndexTable = {
  /** The newest session of an agent, in the order of commits. */
  readonly newestSession: Index<[agentId: string], Id>;
  /** The running total of a session at a time that has passed (`SpendSession.amountHeld`). */
  readonly heldUntil: Index<[sessionId: string, at: number], bigint>;
  /** The time by which a session had held so much since its total was `before`, between two times. */
  readonly heldSince: Index<
    [sessionId: string, after: number, until: number, before: string, amount: string],
    number
  >;
  /**
   * The escalation with this id; or of the warrant with this id the one that waits, or else the newest in the
   * order of commits.
   */
  readonly escalationOrWarrant: Index<[id: string], Id>;
  readonly depositReferenced: Index<
    [organisationId: string, mode: string, asset: string, reference: string],
    Id
  >;
  /** The newest correction of a deposit, in the order of commits, that was not withdrawn. */
  readonly correctionOf: Index<[depositId: string], Id>;
  /** The newest payout to a payee, in the order of commits. */
  readonly newestPayout: Index<[organisationId: string, mode: string, asset: string, payee: string], Id>;
  /** The key of the transaction that pays a payout. */
  readonly transactionOfPayout: Index<[payoutId: string], Id>;
  /** What was sent after a time without a person, and has not failed. */
  readonly sentSince: Index<[organisationId: string, mode: string, asset: string, after: number], bigint>;
  readonly unresolvedEscalation: Index<[warrantId: string], Id>;
  readonly purchaseOfWarrant: Index<[warrantId: string], Id>;
  readonly enabledWebhooks: Index<[organisationId: string, mode: string], Ids>;
  /** The newest policy version of an agent, or (null) of the organisation, in the order of commits. */
  readonly newestPolicy: Index<[organisationId: string, agentId: string | null], Id>;
  readonly newestPolicyNamed: Index<[organisationId: string, agentId: string | null, name: string], Id>;
  readonly schemaNamed: Index<[organisationId: string, name: string], Id>;
  readonly countingPasskey: Index<[organisationId: string], boolean>;
  readonly keyHeldBy: Index<[holder: string], Id>;
  readonly contentBytes: Index<[organisationId: string, mode: string, of: "bought" | "free"], number>;
  readonly oldestFree: Index<[organisationId: string, mode: string], Ids>;
  readonly sourceKeysOf: Index<[organisationId: string], Ids>;
  readonly oldestCapsules: Index<[organisationId: string, mode: string], OldestCapsules>;
  readonly newestCapsule: Index<[organisationId: string, mode: string], Id>;
  /** The transaction with the highest nonce of a wallet. */
  readonly newestTransaction: Index<[chainId: number, wallet: string], Id>;
  readonly openAuthorizations: Index<
    [payer: string, chainId: number, contract: string, since: number],
    bigint
  >;
  readonly anyOrganisation: Index<[], boolean>;
  readonly userByEmail: Index<[email: string], Id>;
  readonly otherOwner: Index<[organisationId: string, userId: string], boolean>;
  readonly secondPerson: Index<[organisationId: string, userId: string], boolean>;
  readonly passkeysOf: Index<[userId: string], Ids>;
  readonly sessionsOf: Index<[userId: string], Ids>;
  /** The people of an organisation with one of these roles (as JSON), those with the higher roles first, at most this many. */
  readonly peopleOf: Index<[organisationId: string, roles: string, limit: number], Ids>;
  /** When the newest notice of a subject was made, epoch milliseconds; null where there is none. */
  readonly newestNotice: Index<[organisationId: string, subject: string], number | null>;
  /** The person whose chat it is. */
  readonly accountOfChat: Index<[chatId: string], Id>;
  readonly unusedResetsOf: Index<[userId: string], Ids>;
  readonly pushSubscriptionsOf: Index<[userId: string], Ids>;
  readonly pushSubscriptionAt: Index<[endpoint: string], Id>;
};
export type IndexName = keyof IndexTable;
