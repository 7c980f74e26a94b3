import { Type } from "@sinclair/typebox";
import { reasonCodesForm } from "../core/clauses/form.ts";
import {
  amount,
  form,
  fraction,
  hash,
  is,
  object,
  oneOf,
  orNull,
  text,
  time,
  type Wire,
} from "../core/form.ts";
import { OUTCOMES, type Policy } from "../core/policy.ts";
import { isoTime } from "../core/time.ts";
import { readBackForm } from "./list.ts";

/** A version of a policy (docs/policies, "The rules"). Its rules are answered as they were saved. */

const rulesForm = () =>
  object({
    bands: Type.Array(
      object({
        minScore: fraction,
        outcome: oneOf(OUTCOMES),
        releasedBps: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 9_999, description: "With partial_release." }),
        ),
        label: Type.Optional(text),
      }),
      { minItems: 1 },
    ),
    maxAmount: Type.Optional(amount),
    alwaysEscalate: Type.Optional(reasonCodesForm()),
    alwaysRefund: Type.Optional(reasonCodesForm()),
  });

const policyForm = form("Policy", () =>
  object({
    id: text,
    object: is("policy"),
    agent_id: orNull(text),
    name: text,
    version: Type.Integer({ minimum: 1 }),
    rules: rulesForm(),
    rules_hash: hash,
    created_at: time,
  }),
);

export const policyResource = (policy: Policy): Wire<typeof policyForm> => ({
  id: policy.id,
  object: "policy",
  agent_id: policy.agentId,
  name: policy.name,
  version: policy.version,
  rules: policy.rules,
  rules_hash: policy.rulesHash,
  created_at: isoTime(policy.createdAt),
});

export const policyListForm = form("PolicyList", () => readBackForm(policyForm(), {}));
