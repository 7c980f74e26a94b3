import type { Evaluation, Evidence } from "../core/clauses/evidence.ts";
import type { Clause } from "../core/clauses/registry.ts";
import type { NewId } from "../core/ids.ts";
import type { Store } from "../store/store.ts";

/** What the verbs work with. Time, ids and randomness come from here, so that a test can set them. */
export type Context = {
  readonly store: Store;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: NewId;
  /** One byte of a cryptographic source. */
  readonly randomByte: () => number;
  readonly passwords: Passwords;
  readonly fetchEvidence: FetchEvidence;
  readonly evaluate: Evaluate;
  /** The bench has a pool of its own, so that its strangers cannot delay a verification. */
  readonly evaluateBench: Evaluate;
  /** Where this instance is reached, such as `http://localhost:8080`. */
  readonly baseUrl: string;
};

export type Passwords = {
  hash(password: string): Promise<string>;
  /** Takes as long where there is no hash as where there is one. */
  verify(password: string, hash: string | null): Promise<boolean>;
};

export type FetchedEvidence = {
  readonly evidence: Evidence;
  readonly status: number | null;
  readonly bytes: number;
  readonly durationMs: number;
};

export type FetchEvidence = (url: string) => Promise<FetchedEvidence>;

export type Evaluate = (task: {
  readonly clauses: readonly Clause[];
  readonly evidence: Evidence;
  readonly schemas: Readonly<Record<string, { readonly hash: string; readonly schema: unknown }>>;
  readonly now: number;
  /** Whose evaluation it is: nobody may fill the pool. */
  readonly callerKey: string;
}) => Promise<Evaluation>;
