import {
  arrayOf,
  boolean,
  count,
  form,
  hash,
  idOf,
  integer,
  is,
  object,
  oneOf,
  orNull,
  score,
  text,
  time,
} from "../core/form.ts";
import { OUTCOMES } from "../core/policy.ts";
import { clauseResultForm, reasonCodesForm } from "./clause.ts";
import { listForm } from "./list.ts";

/** A check of a warrant (README, "Verification"). Its encoder is in core, since `check_hash` is the hash of what it writes. */

const checkForm = form("Check", () =>
  object({
    id: idOf("check"),
    object: is("check"),
    warrant_id: idOf("warrant"),
    source_url: text,
    http_status: orNull(integer),
    bytes: count,
    duration_ms: count,
    score,
    passed: boolean,
    reason_codes: reasonCodesForm(),
    evidence_hash: hash,
    details: arrayOf(clauseResultForm()),
    outcome: oneOf(OUTCOMES),
    band_label: orNull(text),
    evaluated_at: time,
    evaluator_version: orNull(integer),
    signed_by: orNull(text),
    capsule_hash: orNull(hash),
  }),
);

export const checkListForm = form("CheckList", () => listForm(checkForm(), {}));
