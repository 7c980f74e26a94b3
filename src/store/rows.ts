import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuditEntry } from "../core/audit-entry.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Capsule, CapsulePart } from "../core/capsule.ts";
import type { LogAnchor } from "../core/chain-anchor.ts";
import { transactionKey, type WalletTransaction } from "../core/chain-transaction.ts";
import { type ChainTransfer, transferKey } from "../core/chain-transfer.ts";
import type { Check } from "../core/check.ts";
import type { Correction } from "../core/correction.ts";
import type { Deposit } from "../core/deposit.ts";
import { type DepositSender, senderKey } from "../core/deposit-sender.ts";
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
import type { Legs, PostingKind } from "../core/postings.ts";
import type { PushSubscription } from "../core/push.ts";
import { type PayoutTransaction, type PayoutWait, type RailState, railStateKey } from "../core/rail.ts";
import type { Mode } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import type { SourceKey } from "../core/source-key.ts";
import type { TraceEntry } from "../core/trace.ts";
import { type TreasuryWatch, watchKey } from "../core/treasury-watch.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant, WarrantEncoding } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import { type Cosignature, cosignatureKey, type WitnessedLog } from "../core/witness.ts";
import type { Purchase } from "../core/x402/purchase.ts";

/** Rows that commands change. Each write names the row as it was read. */
export type ChangingRows = {
  readonly agent: Agent;
  readonly apiKey: ApiKey;
  readonly authSession: AuthSession;
  /** Written once, and deleted. */
  readonly capsule: Capsule;
  readonly chainTransaction: WalletTransaction;
  readonly chainTransfer: ChainTransfer;
  readonly correction: Correction;
  readonly cosignature: Cosignature;
  readonly delivery: WebhookDelivery;
  /** Deleted when it is removed. */
  readonly depositSender: DepositSender;
  readonly escalation: Escalation;
  readonly idempotencyKey: IdempotencyKey;
  readonly instance: Instance;
  /** Deleted when it is unlinked. */
  readonly messagingAccount: MessagingAccount;
  /** Deleted when it is used. */
  readonly messagingCode: MessagingCode;
  readonly notice: Notice;
  readonly noticeSettings: NoticeSettings;
  readonly organisation: Organisation;
  readonly passkey: Passkey;
  readonly passkeyApproval: PasskeyApproval;
  readonly passwordReset: PasswordReset;
  readonly payout: Payout;
  readonly payoutTransaction: PayoutTransaction;
  readonly payoutWait: PayoutWait;
  /** Deleted after its last notice, and where its escalation has ended. */
  readonly plannedNotice: PlannedNotice;
  readonly purchase: Purchase;
  readonly pushSubscription: PushSubscription;
  readonly railState: RailState;
  readonly sourceKey: SourceKey;
  readonly spendSession: SpendSession;
  readonly treasuryWatch: TreasuryWatch;
  readonly user: User;
  readonly warrant: Warrant;
  readonly webhook: WebhookEndpoint;
  readonly witnessedLog: WitnessedLog;
};

/** Rows that are written once and never changed. */
export type AppendedRows = {
  readonly auditEntry: AuditEntry;
  readonly capsulePart: CapsulePart;
  readonly check: Check;
  readonly content: Content;
  readonly deposit: Deposit;
  readonly logAnchor: LogAnchor;
  readonly policy: Policy;
  readonly posting: Posting;
  readonly schema: NamedSchema;
  readonly trace: TraceEntry;
  readonly verifier: SavedVerifier;
};

export type Rows = ChangingRows & AppendedRows;
export type RowKind = keyof Rows;

/** A used Idempotency-Key of an organisation and mode. */
export type IdempotencyKey = {
  readonly organisationId: string;
  readonly mode: Mode;
  readonly key: string;
  /** SHA-256 of whose request it was, the method, the path and the canonical body. */
  readonly fingerprint: string;
  /** The id of the warrant or purchase whose end gives the outcome; null once there is an outcome. */
  readonly holder: string | null;
  /** What a replay answers; null while the request runs. */
  readonly outcome: RecordedOutcome | null;
  readonly createdAt: number;
};

export type RecordedOutcome = { readonly status: number } & (RecordedBody | RecordedWarrant);

export type RecordedBody = {
  readonly kind: "body";
  readonly body: string;
  /** SHA-256 of the content that fills the answer's `body` field; null where it has none. */
  readonly contentHash: string | null;
};

/**
 * An answer that shows a warrant at one of its versions. A replay writes it again from the terms and the
 * trace.
 */
export type RecordedWarrant = {
  readonly kind: "warrant";
  readonly warrantId: string;
  readonly version: number;
  /** The encoding of the first answer. */
  readonly encoding: WarrantEncoding;
};

/** Bytes that are stored once, under their SHA-256. */
export type Content = { readonly hash: string; readonly bytes: Uint8Array };

/** One movement of money in the ledger (`Legs`). */
export type Posting = {
  readonly organisationId: string;
  readonly mode: Mode;
  readonly asset: string;
  readonly legs: Legs;
  readonly kind: PostingKind;
  /** The id of the deposit, correction, warrant or payout. */
  readonly causeId: string;
  /** Whose account it moves: the payee that a settlement pays, or of a payout; else null. */
  readonly payee: string | null;
  /** By which rail it moves: that of its payout, else `book`. */
  readonly rail?: Payout["rail"];
  readonly recordedAt: number;
};

/** A row's key among those of its kind, as needs and engines name it. */
export function rowKeyOf<Kind extends RowKind>(kind: Kind, row: Rows[Kind]): string {
  switch (kind) {
    case "authSession":
    case "passkeyApproval":
    case "passwordReset":
      return (row as AuthSession | PasskeyApproval | PasswordReset).tokenHash;
    case "idempotencyKey":
      return idempotencyRowKey(row as IdempotencyKey, (row as IdempotencyKey).key);
    case "instance":
      return INSTANCE_KEY;
    case "content":
      return (row as Content).hash;
    case "capsulePart":
      return `${(row as CapsulePart).hash} ${(row as CapsulePart).part}`;
    case "chainTransaction":
    case "logAnchor":
    case "payoutTransaction":
      return transactionKey(row as WalletTransaction | LogAnchor | PayoutTransaction);
    case "chainTransfer":
      return transferKey(row as ChainTransfer);
    case "depositSender":
      return senderKey(row as DepositSender);
    case "payoutWait": {
      const { organisationId, mode, asset, payee } = row as PayoutWait;
      return payeeRowKey(organisationId, mode, asset, payee);
    }
    case "railState":
      return railStateKey(row as RailState);
    case "treasuryWatch":
      return watchKey(row as TreasuryWatch);
    case "cosignature":
      return cosignatureKey(row as Cosignature);
    case "messagingAccount":
    case "messagingCode":
    case "noticeSettings":
      return (row as MessagingAccount | MessagingCode | NoticeSettings).userId;
    case "witnessedLog":
      return (row as WitnessedLog).origin;
    default:
      return (row as { readonly id: string }).id;
  }
}

export const balanceRowKey = (organisationId: string, mode: string, asset: string): string =>
  `${organisationId} ${mode} ${asset}`;

export const payeeRowKey = (organisationId: string, mode: string, asset: string, payee: string): string =>
  `${balanceRowKey(organisationId, mode, asset)} ${payee}`;

/** There is one instance in a ledger. */
export const INSTANCE_KEY = "";

const idempotencyRowKey = (
  { organisationId, mode }: { readonly organisationId: string; readonly mode: Mode },
  key: string,
): string => `${organisationId} ${mode} ${key}`;

/**
 * The question to an index as a key of its answers. NUL separates the parts, since no id, mode or name
 * contains it.
 */
export const indexKeyOf = (of: readonly (string | number | null)[]): string =>
  of.length === 1 ? String(of[0]) : of.length === 2 ? `${of[0]}\0${of[1]}` : of.join("\0");
