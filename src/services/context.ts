import { isRefusal, type Refusal } from "../core/errors.ts";
import type { NewId } from "../core/ids.ts";
import type { Channel, Notice, NoticeResult, Words } from "../core/notice.ts";
import type { Party } from "../core/places.ts";
import type { Mode } from "../core/roles.ts";
import type { Verify } from "../core/signed-note.ts";
import type { SigstoreIdentity } from "../core/source-key.ts";
import type { Treasury } from "../core/treasury.ts";
import type { User } from "../core/user.ts";
import type { LogToWitness, Witness } from "../core/witness.ts";
import type { AssetRule } from "../core/x402/assets.ts";
import type { Finding } from "../core/x402/purchase.ts";
import type { BotApi } from "../platform/bot-api.ts";
import type { compressBody, decompressBody } from "../platform/capsule-coding.ts";
import type { Evaluator } from "../platform/evaluator.ts";
import type { AuthorizationQuestion, EvmChains, TokenBalance } from "../platform/evm-chain.ts";
import type { EvmPayer } from "../platform/evm-payer.ts";
import type { decodeTransaction } from "../platform/evm-wallet.ts";
import type { Fetcher } from "../platform/fetcher.ts";
import type { NoteSigner } from "../platform/note-keys.ts";
import type { PasskeyVerifier } from "../platform/passkeys.ts";
import type { JudgeQuestion, Weakness } from "../platform/password-judge.ts";
import type { Places } from "../platform/places.ts";
import type { SignInLog } from "../platform/sign-in-log.ts";
import type { BundleQuestion } from "../platform/sigstore.ts";
import type { signerAmong } from "../platform/source-signature.ts";
import type { Tokens } from "../platform/tokens.ts";
import type { HoldingReader } from "../platform/treasury-holding.ts";
import type { Vault } from "../platform/vault.ts";
import type { WebPush } from "../platform/web-push.ts";
import type { WebhookRequest, WebhookSender } from "../platform/webhook-sender.ts";
import type { AskWitness } from "../platform/witness-client.ts";
import type { X402Client } from "../platform/x402-request.ts";
import type { Instances } from "../store/instances.ts";
import type { Scope } from "../store/scope.ts";
import type { SharedMemory } from "../store/shared-memory.ts";
import type { Store } from "../store/store.ts";
import type { SignInFailures } from "./auth/failures.ts";
import type { KeyUses } from "./auth/key-uses.ts";
import type { PendingChallenges } from "./auth/passkeys/challenges.ts";
import type { StartLinks } from "./auth/start-links.ts";
import type { SignInThrottle } from "./auth/throttle.ts";
import type { Live } from "./live/live.ts";
import type { Intake } from "./messaging/intake.ts";
import type { DeliverySlots } from "./webhooks/slots.ts";

/** What the verbs work with. Time, ids and randomness come from here, so that a test can set them. */
export type Context = {
  readonly store: Store;
  /** This process among those that serve the ledger. */
  readonly instances: Instances;
  /** What this instance remembers together with those that share its ledger; null where it has the ledger for itself. */
  readonly shared: SharedMemory | null;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: NewId;
  /** One byte of a cryptographic source. */
  readonly randomByte: () => number;
  readonly passwords: Passwords;
  readonly signInThrottle: SignInThrottle<void | Promise<void>>;
  readonly signInLog: SignInLog;
  readonly signInFailures: SignInFailures;
  readonly startLinks: StartLinks;
  readonly passkeys: PasskeyVerifier;
  readonly passkeyChallenges: PendingChallenges;
  readonly keyUses: KeyUses;
  /** Of checks and of purchases by x402. */
  readonly places: Places;
  readonly fetchEvidence: FetchEvidence;
  /** A seller that runs for one piece of work only, for the first warrant of a sandbox. */
  readonly withTrySeller: WithTrySeller;
  readonly evaluate: Evaluate;
  /** Checks a schema that is about to be saved, in a child process: a large one would stall the server. */
  readonly parseSchema: Evaluator["parseSchema"];
  /** The bench is open to strangers. Its pool is separate, so that they cannot delay a verification. */
  readonly evaluateBench: Evaluate;
  /** Signs as this instance. */
  readonly tokens: Tokens;
  readonly x402: Buying;
  readonly capsules: KeepingCapsules;
  readonly signerAmong: typeof signerAmong;
  /** Who has signed a Sigstore bundle, and how it is fetched; null where the operator names no trusted root. */
  readonly sigstore: (VerifyingBundles & { readonly fetchBeside: Fetcher["fetchBeside"] }) | null;
  /** Encrypts secrets that must be read again. */
  readonly vault: Vault;
  readonly sendWebhook: (request: WebhookRequest) => ReturnType<WebhookSender["send"]>;
  /** By what push services and browsers know this instance. */
  readonly webPush: WebPush;
  readonly witness: Witnessing;
  readonly chain: OwnChain;
  /** The tokens by which money comes in and goes out on chains, and their wallets. */
  readonly treasuries: readonly Treasury[];
  readonly holdingOf: HoldingReader;
  readonly deliverySlots: DeliverySlots;
  /** The streams by which pages of the console hear what changed. */
  readonly live: Live;
  /**
   * Counts since the process started, for the metrics: deliveries given up after four attempts, and attempts
   * in which nothing was sent.
   */
  readonly deliveryFailures: {
    exhausted: number;
    notSent: number;
    /** The endpoints whose deliveries were given up, until their admins were told. */
    readonly endpoints: Map<string, Scope>;
  };
  readonly notices: Telling;
  /** Null where the operator has no bot. */
  readonly messaging: Messaging | null;
  /** Where this instance is reached, such as `http://localhost:8080`. */
  readonly baseUrl: string;
};

/**
 * How each channel sends a notice; null where this instance does not have the channel. Each has its own slots, so a channel that
 * hangs takes none of another's.
 */
export type Telling = Readonly<
  Record<Channel, { readonly send: SendNotice | null; readonly slots: DeliverySlots }>
>;

/** Sends a notice to its person. The result says what the other side answered, or why it did not. */
export type SendNotice = (notice: Notice, user: User, words: Words) => Promise<NoticeResult>;

/** The bot that people chat with. */
export type Messaging = {
  readonly bot: BotApi;
  /** Whether it hears what people write: without its webhook's secret no chat can be linked. */
  readonly hears: boolean;
  readonly intake: Intake;
  /** Is called with why an update is ignored. */
  readonly onIgnored: (why: string) => void;
};

/** What this instance witnesses, and who witnesses it. */
export type Witnessing = {
  readonly logs: readonly LogToWitness[];
  readonly witnesses: readonly Witness[];
  /** The key that cosigns. Throws a refusal where it is missing. */
  readonly signer: () => Promise<NoteSigner>;
  readonly verify: Verify;
  readonly ask: AskWitness;
};

/** What is to be known of the chain that the instance itself sends to. */
export type OwnChain = {
  /** Whether the log is anchored on a chain. Its entries then have no `chain_ref` before a chain has confirmed them. */
  readonly anchors: boolean;
  readonly decode: typeof decodeTransaction;
};

/** What purchases by x402 are made with. */
export type Buying = X402Client & {
  /** The wallets that pay by `exact`; null where a mode has none. */
  readonly wallets: Readonly<Record<Mode, EvmPayer | null>>;
  /** The tokens that purchases can be paid with. */
  readonly assets: readonly AssetRule[];
  readonly chains: Chains;
  /** Resolves after this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
  /**
   * The purchases that this process is working on. All other unfinished purchases that no other instance owns were cut off, and
   * wait for recovery.
   */
  readonly underWay: Set<string>;
  /** How many bytes an organisation and mode may have bought. */
  readonly contentBytesMax: number;
  /** How many bytes it may have of what cost nothing. */
  readonly freeBytesMax: number;
};

/** Who has signed a Sigstore bundle; null where none of those in question has, or where that could not be found out. */
export type VerifyingBundles = {
  signerOf(question: BundleQuestion, party: Party): Promise<SigstoreIdentity | null>;
};

/** How the capsules of checks are kept. */
export type KeepingCapsules = {
  /** How many bytes an organisation and mode may have. */
  readonly bytesMax: number;
  /** For how many days they are kept. */
  readonly days: number;
  readonly compress: typeof compressBody;
  readonly decompress: typeof decompressBody;
  /** How many could not be kept since the process started, for the metrics. */
  readonly notKept: { count: number };
};

/** The chains for which the operator has configured an endpoint. No function here throws. */
export type Chains = {
  /** The ids of these chains. */
  readonly ids: readonly number[];
  /** What the chain says of an authorization. */
  find(question: AuthorizationQuestion & { readonly validBefore: number }): Promise<Finding>;
  /** How much of a token a wallet has, and at what time; null where that cannot be read. */
  balanceOf(...question: Parameters<EvmChains["balanceOf"]>): Promise<TokenBalance | null>;
};

export type Passwords = {
  hash(password: string): Promise<string>;
  /** Whether the hash is easier to try passwords against than those that are made now. */
  isOutdated(hash: string): boolean;
  /** Why a password is too easy to guess and what would help, in words; null where it is good enough. */
  weaknessOf(question: JudgeQuestion): Promise<Weakness>;
  /** Without a hash the answer is false, and takes just as long. */
  verify(password: string, hash: string | null): Promise<boolean>;
};

/** The refusal of an evaluator without a free child. Any other error is thrown again. */
export function refusedBusy(error: unknown): Refusal {
  if (isRefusal(error)) return error;
  throw error;
}

/** As `Fetcher.fetch`. For whom it is, and which redirects may be followed, has to be said: what is not said has no limit. */
export type FetchEvidence = (
  ...asked: Required<Parameters<Fetcher["fetch"]>>
) => ReturnType<Fetcher["fetch"]>;

/** What a seller for a try sells at, and the only fetcher that reaches it. */
type TrySeller = { readonly url: string; readonly fetchEvidence: FetchEvidence };
type WithTrySeller = <Answer>(work: (seller: TrySeller) => Promise<Answer>) => Promise<Answer>;
export type FetchedEvidence = Awaited<ReturnType<FetchEvidence>>;
export type Evaluate = Evaluator["evaluate"];
