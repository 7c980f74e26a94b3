import { isRefusal, type Refusal } from "../core/errors.ts";
import type { NewId } from "../core/ids.ts";
import type { Evaluator } from "../platform/evaluator.ts";
import type { Fetcher } from "../platform/fetcher.ts";
import type { PasskeyVerifier } from "../platform/passkeys.ts";
import type { Vault } from "../platform/vault.ts";
import type { WebhookSender } from "../platform/webhook-sender.ts";
import type { Store } from "../store/store.ts";
import type { KeyUses } from "./auth/key-uses.ts";
import type { PendingChallenges } from "./auth/passkeys/challenges.ts";
import type { SignInThrottle } from "./auth/throttle.ts";
import type { CheckLimiter } from "./warrants/check-limiter.ts";
import type { DeliveryPlaces } from "./webhooks/places.ts";

/** What the verbs work with. Time, ids and randomness come from here, so that a test can set them. */
export type Context = {
  readonly store: Store;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: NewId;
  /** One byte of a cryptographic source. */
  readonly randomByte: () => number;
  readonly passwords: Passwords;
  readonly signInThrottle: SignInThrottle;
  readonly passkeys: PasskeyVerifier;
  readonly passkeyChallenges: PendingChallenges;
  readonly keyUses: KeyUses;
  readonly checkLimiter: CheckLimiter;
  readonly fetchEvidence: FetchEvidence;
  readonly evaluate: Evaluate;
  /** Compiles a schema that is about to be saved, where a large one cannot stall the server. */
  readonly parseSchema: Evaluator["parseSchema"];
  /** The bench has a pool of its own, so that its strangers cannot delay a verification. */
  readonly evaluateBench: Evaluate;
  /** Seals secrets that must be read again. */
  readonly vault: Vault;
  readonly sendWebhook: WebhookSender["send"];
  readonly deliveryPlaces: DeliveryPlaces;
  /** Where this instance is reached, such as `http://localhost:8080`. */
  readonly baseUrl: string;
};

export type Passwords = {
  hash(password: string): Promise<string>;
  /** Takes as long where there is no hash as where there is one. */
  verify(password: string, hash: string | null): Promise<boolean>;
};

/** Where the evaluator had no place, that is the answer; another fault stays one. */
export function refusedBusy(error: unknown): Refusal {
  if (isRefusal(error)) return error;
  throw error;
}

export type FetchEvidence = Fetcher["fetch"];
export type FetchedEvidence = Awaited<ReturnType<FetchEvidence>>;
export type Evaluate = Evaluator["evaluate"];
