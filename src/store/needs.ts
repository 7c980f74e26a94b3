import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Capsule } from "../core/capsule.ts";
import type { TransactionKey, WalletOfChain, WalletTransaction } from "../core/chain-transaction.ts";
import type { ChainTransfer, TransferKey } from "../core/chain-transfer.ts";
import type { Correction } from "../core/correction.ts";
import type { Deposit } from "../core/deposit.ts";
import type { DepositSender, SenderName } from "../core/deposit-sender.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { MessagingAccount, MessagingCode } from "../core/messaging.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Notice, NoticeSettings, PlannedNotice } from "../core/notice.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey, PasskeyApproval } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { PayeeName, Payout } from "../core/payout.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance, PayeeBalance } from "../core/postings.ts";
import type { PushSubscription } from "../core/push.ts";
import type { PayoutTransaction, PayoutWait, RailState } from "../core/rail.ts";
import type { Role } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import type { WindowUses } from "../core/session-limits.ts";
import type { SourceKey } from "../core/source-key.ts";
import type { TraceStep } from "../core/trace.ts";
import type { TreasuryWatch, WatchKey } from "../core/treasury-watch.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Cosignature, WitnessedLog } from "../core/witness.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import type { IdempotencyKey } from "./rows.ts";

/** The type of a need: what it is asked with, and what it finds. Asking for null finds nothing. */
type Need<Ask, Found> = { readonly ask: Ask; readonly found: Found };

/** A need that follows from another need of the command, such as an agent from its warrant. */
export type From<Source extends NeedName> = { readonly from: Source };

/**
 * Everything that a command can ask for, by name. A name always means the same. Only rows of the command's
 * organisation and mode are found. Null, false or an empty list means that nothing was found.
 */
export type NeedTable = {
  // Who calls
  readonly callerKey: Need<string | null, ApiKey | null>;
  readonly callerAgent: Need<string | null, Agent | null>;
  /** A removed person is not found. */
  readonly callerUser: Need<string | null, User | null>;
  /** The sign-in, by the hash of its cookie's token. */
  readonly callerSession: Need<string | null, AuthSession | null>;

  /** The chat that a person has linked. */
  readonly callerChat: Need<string | null, MessagingAccount | null>;

  // The request's key
  readonly idempotencyKey: Need<string, IdempotencyKey | null>;
  /** The warrant that a replay of the key shows, as it is now; null where the answer is not a warrant. */
  readonly replayedWarrant: Need<From<"idempotencyKey">, Warrant | null>;
  /** The move after which that warrant was first shown: a replay shows it as this move left it. */
  readonly replayedStep: Need<From<"idempotencyKey">, TraceStep | null>;
  /** The key in flight of this warrant's check, or of this purchase. */
  readonly heldKey: Need<string, IdempotencyKey | null>;

  // A warrant, and what a move of it touches
  readonly warrant: Need<string | From<"escalationOrWarrant"> | From<"purchase">, Warrant | null>;
  /** The agent that the warrant names. */
  readonly warrantAgent: Need<From<"warrant">, Agent | null>;
  /** The agent whose key opened the warrant. */
  readonly warrantOpener: Need<From<"warrant">, Agent | null>;
  /** The session that the warrant was charged to. */
  readonly warrantSession: Need<From<"warrant">, SpendSession | null>;
  /** The policy version that the warrant is pinned to. */
  readonly warrantPolicy: Need<From<"warrant">, Policy | null>;
  /** The purchase that the warrant was opened for. */
  readonly warrantPurchase: Need<From<"warrant">, Purchase | null>;
  /** The escalation that waits for a person; a warrant has one at most. */
  readonly warrantEscalation: Need<From<"warrant">, Escalation | null>;
  /**
   * By an escalation's id, that escalation. By a warrant's id, its escalation that waits for a person, or else
   * its newest one.
   */
  readonly escalationOrWarrant: Need<string, Escalation | null>;
  /** The enabled endpoints of the organisation and mode. */
  readonly webhooks: Need<true, readonly WebhookEndpoint[]>;
  readonly purchase: Need<string, Purchase | null>;

  // What an open looks at
  readonly agent: Need<string | null, Agent | null>;
  /** The agent's newest session. */
  readonly agentSession: Need<From<"agent">, SpendSession | null>;
  /** How much of that session's windows is used, for a hold of this amount. */
  readonly sessionWindows: Need<From<"agentSession"> & { readonly amount: bigint }, WindowUses>;
  /** The newest policy version that is saved for the agent, under any name. */
  readonly agentPolicy: Need<From<"agent">, Policy | null>;
  readonly callerAgentPolicy: Need<From<"callerAgent">, Policy | null>;
  /** The organisation's default: the newest policy version without an agent. */
  readonly organisationPolicy: Need<true, Policy | null>;
  /** One policy version. */
  readonly policy: Need<string | null, Policy | null>;
  /** The newest version of that policy's name. */
  readonly newestOfPolicy: Need<From<"policy">, Policy | null>;
  readonly verifier: Need<string | null, SavedVerifier | null>;
  /** The schema that the saved verifier's clause names. */
  readonly verifierSchema: Need<From<"verifier">, NamedSchema | null>;
  /** The schemas with these names, in the order of the names. Unknown names are left out. */
  readonly schemas: Need<readonly string[], readonly NamedSchema[]>;
  /** The balance of an asset. */
  readonly balance: Need<string | From<"deposit">, Balance | null>;
  /** Whether anybody of the organisation has a passkey that counts for the threshold. */
  readonly hasPasskey: Need<true, boolean>;
  /** The sum of what is bought, or free, in the stored content of the organisation and mode. */
  readonly contentBytes: Need<"bought" | "free", number>;
  /** The purchases that have kept free content for longest, at most OLDEST_FREE_MAX of them. */
  readonly oldestFree: Need<true | null, readonly Purchase[]>;
  /**
   * How much of a token the wallet has signed authorizations for that may still be used, in the token's
   * smallest unit.
   */
  readonly openAuthorizations: Need<WalletToken | null, bigint>;

  /** The keys of sources that the organisation has registered and not removed. */
  readonly sourceKeys: Need<true, readonly SourceKey[]>;

  // What checks keep
  /** The oldest capsules of the organisation and mode, at most this many, and the newest one. */
  readonly oldestCapsules: Need<number, readonly Capsule[]>;
  readonly capsule: Need<string, Capsule | null>;
  readonly newestCapsule: Need<true, Capsule | null>;

  // People
  /** Whether the instance has an organisation. */
  readonly hasOrganisation: Need<true, boolean>;
  /** A person whom the command concerns. A removed person is not found. */
  readonly user: Need<string, User | null>;
  /** A person of any organisation, since an e-mail is unique in the instance. */
  readonly userByEmail: Need<string, User | null>;
  /** Whether the organisation has an owner besides this person. */
  readonly hasOtherOwner: Need<string, boolean>;
  /** Whether anybody but this person could decide a dispute. */
  readonly hasSecondPerson: Need<string, boolean>;
  /** A passkey of any organisation, since its id is unique. */
  readonly passkey: Need<string, Passkey | null>;
  /** All passkeys of a person, in the order of their registration. */
  readonly passkeys: Need<string | null, readonly Passkey[]>;
  /** The approval, by the hash of its token. */
  readonly passkeyApproval: Need<string | null, PasskeyApproval | null>;
  /** A person's sign-ins that have not ended, in the order of their tokens' hashes. */
  readonly userSessions: Need<string, readonly AuthSession[]>;
  /** The reset link, by the hash of its token. */
  readonly passwordReset: Need<string, PasswordReset | null>;
  /** A person's reset links that nobody used. */
  readonly unusedPasswordResets: Need<string, readonly PasswordReset[]>;

  // What administrators manage
  readonly apiKey: Need<string, ApiKey | null>;
  /** A spend session by its id. Whose it is must have been checked before. */
  readonly spendSession: Need<string, SpendSession | null>;
  /** The newest version of a policy's name, of an agent or (null) of the organisation. */
  readonly policyNamed: Need<PolicyName, Policy | null>;
  /** The deposit of that reference, of which each asset of a scope has one. */
  readonly depositReferenced: Need<DepositReference | null, Deposit | null>;
  readonly deposit: Need<string | From<"correction">, Deposit | null>;
  readonly correction: Need<string, Correction | null>;
  /** The newest correction of the deposit that was not withdrawn. */
  readonly depositCorrection: Need<From<"deposit">, Correction | null>;
  /** What was paid to each of these payees, in their order; null where nothing was. */
  readonly payeeBalances: Need<readonly PayeeName[], readonly (PayeeBalance | null)[]>;
  readonly payout: Need<string, Payout | null>;
  /** The newest payout to a payee. */
  readonly newestPayout: Need<PayeeName, Payout | null>;
  /** Which transaction pays the payout; null on the rail `book`. */
  readonly payoutTransaction: Need<From<"payout">, PayoutTransaction | null>;
  readonly payoutChainTransaction: Need<From<"payoutTransaction">, WalletTransaction | null>;
  /** What each of these payees waits for, in their order; null where the server has not looked at one. */
  readonly payoutWaits: Need<readonly PayeeName[], readonly (PayoutWait | null)[]>;
  /** How much of an asset was sent on its chain in the last 24 hours without a person, without what has failed. */
  readonly sentInDay: Need<string, bigint>;
  /** The tokens that stand for these assets of modes, in their order; null where none does. */
  readonly railStates: Need<readonly Pick<RailState, "mode" | "asset">[], readonly (RailState | null)[]>;
  readonly webhook: Need<string, WebhookEndpoint | null>;
  readonly delivery: Need<string, WebhookDelivery | null>;

  // Notices
  readonly notice: Need<string, Notice | null>;
  /** The plan of the escalation that waits. */
  readonly escalationPlan: Need<From<"warrantEscalation"> | null, PlannedNotice | null>;
  /** The plans with these ids; those that are gone are left out. */
  readonly plannedNotices: Need<readonly string[], readonly PlannedNotice[]>;
  /** What a person chose about notices; null where they chose nothing. */
  readonly noticeSettings: Need<string, NoticeSettings | null>;
  /** The browsers of a person that may be notified, oldest first. */
  readonly pushSubscriptions: Need<string, readonly PushSubscription[]>;
  /** The one at this endpoint, of any organisation, since an endpoint is one browser's. */
  readonly pushSubscriptionAt: Need<string, PushSubscription | null>;
  /** The people with this role and above, at most READERS_MAX of them, each with what they chose. */
  readonly readers: Need<Role, readonly NoticeReader[]>;
  /** When the newest notice of a subject was made, epoch milliseconds; null where there is none. */
  readonly newestNotice: Need<string, number | null>;
  /** The chat that a person has linked. */
  readonly messagingAccount: Need<string, MessagingAccount | null>;
  /** Whose chat it is, of any organisation, since a chat belongs to one person. */
  readonly messagingAccountOfChat: Need<string, MessagingAccount | null>;
  /** A person's code, which may have expired. */
  readonly messagingCode: Need<string, MessagingCode | null>;

  // Witnesses
  /** How far another log was witnessed, by its origin. */
  readonly witnessedLog: Need<string, WitnessedLog | null>;
  /** A witness's signature on a checkpoint of this log. */
  readonly cosignature: Need<Pick<Cosignature, "size" | "witness">, Cosignature | null>;

  // Chains
  readonly chainTransaction: Need<TransactionKey, WalletTransaction | null>;
  /** The transaction of a wallet with the highest nonce. */
  readonly newestTransaction: Need<WalletOfChain, WalletTransaction | null>;
  readonly treasuryWatch: Need<WatchKey, TreasuryWatch | null>;
  readonly chainTransfer: Need<TransferKey, ChainTransfer | null>;
  /** The transfers of these keys; those that are not there are left out. */
  readonly chainTransfers: Need<readonly TransferKey[], readonly ChainTransfer[]>;
  /** Of any organisation, since an address belongs to one. */
  readonly depositSender: Need<SenderName, DepositSender | null>;
};

/** How many purchases `oldestFree` finds: one commit may give up the content of this many. */
export const OLDEST_FREE_MAX = 100;

/** How many capsules one commit may delete. */
export const OLDEST_CAPSULES_MAX = 64;

/** How many people of an organisation hear of one thing. */
export const READERS_MAX = 100;

export type NeedName = keyof NeedTable;

/** A person who hears of things. */
export type NoticeReader = {
  readonly user: User;
  readonly settings: NoticeSettings | null;
  /** The chat that they have linked. */
  readonly chat: MessagingAccount | null;
  /** In how many browsers they are notified. */
  readonly devices: number;
};

export type DepositReference = { readonly asset: string; readonly reference: string };

export type PolicyName = { readonly agentId: string | null; readonly name: string };

export type WalletToken = {
  readonly payer: string;
  readonly chainId: number;
  readonly contract: string;
  /** When the wallet's balance was read, epoch milliseconds. Payments since then are not in the balance. */
  readonly since: number;
};

/** What a command asks for. */
export type Needs = { readonly [Name in NeedName]?: NeedTable[Name]["ask"] };

/** What is found: exactly what the needs name. A need that the type declares as optional cannot be read. */
export type Found<N extends Needs> = {
  readonly [Name in keyof N & NeedName]: undefined extends N[Name] ? never : NeedTable[Name]["found"];
};

/** What every command gets without asking. */
export type Always = {
  readonly instance: Instance;
  /** The time for new records, epoch milliseconds. It never runs backwards (see `BatchTime`). */
  readonly recordedAt: number;
};

/** What a command of an organisation decides from. */
export type Snapshot<N extends Needs> = Found<N> & Always & { readonly organisation: Organisation };

/** Only needs whose sources are named too, here or in `All`: a need that follows from another requires it. */
export type Complete<N extends Needs, All extends Needs = N> = {
  [Name in keyof N]: N[Name] extends From<infer Source>
    ? Source extends keyof All
      ? N[Name]
      : never
    : N[Name];
};
