import { canonicalJson, sha256 } from "./canonical.ts";
import { EVALUATOR_VERSION } from "./clauses/evaluator-version.ts";
import {
  type Evaluation,
  type Evidence,
  evidenceHashOf,
  reachedEvidence,
  unreachedEvidence,
} from "./clauses/evidence.ts";
import { EVIDENCE_BYTES_MAX } from "./clauses/limits.ts";
import type { SourceCode } from "./clauses/reason-codes.ts";
import type { Schemas } from "./clauses/schema.ts";
import type { Mode } from "./roles.ts";
import type { Signer } from "./source-key.ts";
import { isoTime } from "./time.ts";
import { countedBytes } from "./x402/content.ts";

/**
 * The capsule of a check: everything that is needed to evaluate it again (docs/security, "Capsules"). It is never public. Its
 * facts are one canonical JSON text, whose hash the check keeps. The body is stored under the hash of its stored bytes.
 */
export type Capsule = {
  /** The id of its check. A check that was interrupted leaves a capsule without a check. */
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  /** `CapsuleFacts` as canonical JSON. */
  readonly facts: string;
  /** The hash of the body as it is stored; null where nothing was read, or the body is empty. */
  readonly storedHash: string | null;
  /** In how many parts the compressed body is stored; 0 where a purchase has stored it already. */
  readonly parts: number;
  /** What it counts for in the quota. */
  readonly bytes: number;
  /** The sum of `bytes` of all capsules that the organisation and mode ever had, with this one. */
  readonly bytesUntil: number;
  /** The time of its commit. */
  readonly createdAt: number;
};

/**
 * A part of a compressed body. Each part has a commit of its own, and other commands are committed between two of them. The hash is that of
 * the whole compressed body, so parts of one body that were compressed differently are never mixed.
 */
export type CapsulePart = { readonly hash: string; readonly part: number; readonly bytes: Uint8Array };

/** A commit of this size does not hold up the others noticeably. */
export const PART_BYTES = 256 * 1024;

/** The smallest quota: room for the largest capsule, since what cannot be compressed becomes a little longer. */
export const CAPSULE_BYTES_MIN = 2 * EVIDENCE_BYTES_MAX;

/** One answer on the way to the evidence. */
export type Hop = {
  readonly url: string;
  readonly status: number;
  /** The address that answered; null where it is not known. */
  readonly address: string | null;
  /** SHA-256 of its TLS certificate; null without TLS, or where it is not known. */
  readonly certificateSha256: string | null;
};

/** What was seen of the source, besides the evidence. */
export type SeenAnswer = {
  /** The redirects, and last the answer itself; empty where nobody answered. */
  readonly hops: readonly Hop[];
  /** The headers of the last answer, by lower-case names; null where they are not known, or longer than is kept. */
  readonly headers: readonly (readonly [name: string, value: string])[] | null;
  /** Whether it is signed, and its `Content-Digest` is that of the bytes as they were sent. */
  readonly holdsItsDigest: boolean;
};

/** Where only the evidence is known: no answer came, or a crash has forgotten the rest. */
export const UNSEEN_ANSWER: SeenAnswer = { hops: [], headers: null, holdsItsDigest: false };

const HEADERS_MAX = 256;
const HEADERS_LENGTH_MAX = 32 * 1024;

/** The headers of an answer; null where they are longer than is kept. What is not kept is not judged either. */
export function headersSeen(answer: Iterable<readonly [string, string]>): SeenAnswer["headers"] {
  const headers = [...answer].map(([name, value]) => [name, seenValue(name, value)] as const);
  const length = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  return headers.length > HEADERS_MAX || length > HEADERS_LENGTH_MAX ? null : headers;
}

/** A cookie opens a session to whoever has it, and no signature here covers one: its hash is enough. */
const seenValue = (name: string, value: string): string =>
  name === "set-cookie" ? `sha256:${sha256(value)}` : value.toWellFormed();

export type CapsuleFacts = {
  readonly check_id: string;
  readonly warrant_id: string;
  readonly method: "GET" | "POST";
  readonly source_url: string;
  readonly hops: readonly {
    readonly url: string;
    readonly status: number;
    readonly address: string | null;
    readonly certificate_sha256: string | null;
  }[];
  /** Null where they are not known, or were longer than is kept. */
  readonly headers: readonly (readonly [name: string, value: string])[] | null;
  readonly holds_its_digest: boolean;
  /**
   * The registered key that the source has signed `@status` and `content-digest` with, or the identity that has signed
   * the bundle beside the answer; null where none.
   */
  readonly signed_with: Signer | null;
  /** The text of that bundle. */
  readonly sigstore_bundle: string | null;
  /** Why there is no evidence; null where there is. */
  readonly source_code: SourceCode | null;
  readonly status: number | null;
  readonly last_modified_at: string | null;
  readonly evidence_hash: string;
  readonly bytes: number;
  /** The hashes of the schemas that the clauses name, by their names. */
  readonly schema_hashes: Readonly<Record<string, string>>;
  readonly evaluated_at: string;
  readonly evaluator_version: number;
};

export type CapsuleOf = {
  /** Of the check. */
  readonly id: string;
  readonly warrantId: string;
  readonly method: CapsuleFacts["method"];
  readonly sourceUrl: string;
  readonly evidence: Evidence;
  readonly answer: SeenAnswer;
  readonly evaluation: Evaluation;
  readonly schemas: Schemas;
  readonly signature: { readonly signer: Signer; readonly bundle: string | null } | null;
};

/** The facts of a capsule as canonical JSON. */
export function capsuleFacts(of: CapsuleOf): string {
  const { evidence, evaluation, answer } = of;
  const facts: CapsuleFacts = {
    check_id: of.id,
    warrant_id: of.warrantId,
    method: of.method,
    source_url: of.sourceUrl,
    hops: answer.hops.map(({ url, status, address, certificateSha256 }) => ({
      url: url.toWellFormed(),
      status,
      address,
      certificate_sha256: certificateSha256,
    })),
    headers: answer.headers,
    holds_its_digest: answer.holdsItsDigest,
    signed_with: of.signature?.signer ?? null,
    sigstore_bundle: of.signature?.bundle ?? null,
    source_code: evidence.reached ? null : evidence.reason,
    status: evidence.reached ? evidence.status : null,
    last_modified_at:
      evidence.reached && evidence.lastModifiedAt !== null ? isoTime(evidence.lastModifiedAt) : null,
    evidence_hash: evidenceHashOf(evidence),
    bytes: evidence.reached ? evidence.body.length : 0,
    schema_hashes: Object.fromEntries(Object.entries(of.schemas).map(([name, { hash }]) => [name, hash])),
    evaluated_at: isoTime(evaluation.evaluatedAt),
    evaluator_version: EVALUATOR_VERSION,
  };
  return canonicalJson(facts);
}

export const capsuleHashOf = ({ facts }: Pick<Capsule, "facts">): string => sha256(facts);

/** What was seen of the source, as the facts have it. */
export const answerOf = ({ hops, headers, holds_its_digest }: CapsuleFacts): SeenAnswer => ({
  hops: hops.map(({ certificate_sha256: certificateSha256, ...hop }) => ({ ...hop, certificateSha256 })),
  headers,
  holdsItsDigest: holds_its_digest,
});

/** The evidence that the facts and a body stand for. */
export function evidenceOf(facts: CapsuleFacts, body: Uint8Array): Evidence {
  const { source_code, status, last_modified_at } = facts;
  if (source_code !== null) return unreachedEvidence(source_code);
  const lastModifiedAt = last_modified_at === null ? null : Date.parse(last_modified_at);
  return reachedEvidence({ status, body, lastModifiedAt });
}

/** What a capsule counts: its facts, and its stored body. */
export const capsuleBytes = (facts: string, storedLength: number): number =>
  countedBytes(Buffer.byteLength(facts) + storedLength);

/**
 * How much an organisation and mode has, by its oldest and its newest capsule, since the oldest are always deleted first.
 */
export const keptBytes = (oldest: Capsule | null, newest: Capsule | null): number =>
  oldest && newest ? newest.bytesUntil - oldest.bytesUntil + oldest.bytes : 0;
