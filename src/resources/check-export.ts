import { Type } from "@sinclair/typebox";
import type { CapsuleFacts } from "../core/capsule.ts";
import type { checkForm } from "../core/check.ts";
import { SOURCE_CODES } from "../core/clauses/reason-codes.ts";
import type { Schemas } from "../core/clauses/schema.ts";
import {
  anyObject,
  arrayOf,
  boolean,
  count,
  hash,
  integer,
  is,
  object,
  oneOf,
  orNull,
  score,
  text,
  type Wire,
} from "../core/form.ts";
import type { Spec } from "../core/warrant.ts";

/** A check with all that it was made from, as one file (docs/security, "Capsules"). */
export type CheckExport = {
  readonly object: "check_export";
  readonly check: Wire<typeof checkForm>;
  readonly check_hash: string;
  readonly spec: Spec;
  readonly spec_hash: string;
  readonly schemas: Schemas;
  readonly capsule: CapsuleFacts;
  readonly capsule_hash: string;
  /** The bytes that were evaluated, in base64; null where there were none. */
  readonly body: string | null;
};

/** A time as `isoTime` writes it, in years of four digits. */
const isoText = Type.String({
  pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{3}Z$",
});

const signerForm = () =>
  Type.Union([
    object({ kty: is("OKP"), crv: is("Ed25519"), x: text }),
    object({ kty: is("EC"), crv: is("P-256"), x: text, y: text }),
    object({ issuer: text, subject: text }),
  ]);

/** What of a file must be right before it can be evaluated. Its hashes say whether it is what Holdfast wrote. */
export const checkExportForm = () =>
  Type.Unsafe<CheckExport>(
    object({
      object: is("check_export"),
      check: object({
        id: text,
        warrant_id: text,
        capsule_hash: hash,
        evidence_hash: hash,
        score,
        signed_by: orNull(text),
        evaluated_at: isoText,
        reason_codes: arrayOf(text),
        details: arrayOf(object({ kind: text, passed: boolean, reason_code: orNull(text) })),
      }),
      check_hash: hash,
      spec: object({ clauses: Type.Array(Type.Unknown()) }),
      spec_hash: hash,
      schemas: anyObject("The named schemas.", object({ hash, schema: Type.Unknown() })),
      capsule: object({
        check_id: text,
        warrant_id: text,
        method: oneOf(["GET", "POST"]),
        hops: arrayOf(object({ url: text, status: integer })),
        headers: orNull(arrayOf(Type.Tuple([text, text]))),
        holds_its_digest: boolean,
        signed_with: orNull(signerForm()),
        sigstore_bundle: orNull(text),
        source_code: orNull(oneOf(SOURCE_CODES)),
        status: orNull(count),
        last_modified_at: orNull(isoText),
        evidence_hash: hash,
        schema_hashes: anyObject("The hashes of the named schemas.", hash),
        evaluated_at: isoText,
        evaluator_version: integer,
      }),
      capsule_hash: hash,
      body: orNull(text),
    }),
  );
