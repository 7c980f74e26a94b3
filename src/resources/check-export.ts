import { Type } from "@sinclair/typebox";
import type { CapsuleFacts } from "../core/capsule.ts";
import type { checkResource } from "../core/check.ts";
import type { Schemas } from "../core/clauses/schema.ts";
import { anyObject, arrayOf, boolean, integer, is, object, orNull, text } from "../core/form.ts";
import type { Spec } from "../core/warrant.ts";

/** A check with all that it was made from, as one file (README, "Capsules"). */
export type CheckExport = {
  readonly object: "check_export";
  readonly check: ReturnType<typeof checkResource>;
  readonly check_hash: string;
  readonly spec: Spec;
  readonly spec_hash: string;
  readonly schemas: Schemas;
  readonly capsule: CapsuleFacts;
  readonly capsule_hash: string;
  /** The bytes that were evaluated, in base64; null where there were none. */
  readonly body: string | null;
};

/** What of a file must be right before it can be evaluated. Its hashes say whether it is what Holdfast wrote. */
export const checkExportForm = () =>
  Type.Unsafe<CheckExport>(
    object({
      object: is("check_export"),
      check: object({
        id: text,
        capsule_hash: text,
        evidence_hash: text,
        score: integer,
        reason_codes: arrayOf(text),
        details: arrayOf(object({ kind: text, passed: boolean, reason_code: orNull(text) })),
      }),
      check_hash: text,
      spec: object({ clauses: Type.Array(Type.Unknown()) }),
      spec_hash: text,
      schemas: anyObject("The named schemas.", object({ hash: text, schema: Type.Unknown() })),
      capsule: object({
        check_id: text,
        source_code: orNull(text),
        status: orNull(integer),
        last_modified_at: orNull(text),
        evidence_hash: text,
        evaluated_at: text,
        evaluator_version: integer,
      }),
      capsule_hash: text,
      body: orNull(text),
    }),
  );
