import { describe, expect, test } from "bun:test";
import {
  ERRORS,
  type ErrorCode,
  type ErrorType,
  isRefusal,
  refuse,
  refuseField,
  statusOf,
  typeOf,
} from "../../src/core/errors.ts";

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** The status and the type of each code (docs/errors, "Errors"), written out again. */
const CATALOGUE: readonly (readonly [ErrorCode, number, ErrorType])[] = [
  ["validation_failed", 400, "invalid_request"],
  ["deadline_in_past", 400, "invalid_request"],
  ["idempotency_key_required", 400, "invalid_request"],
  ["policy_no_bands", 400, "invalid_request"],
  ["policy_no_floor_band", 400, "invalid_request"],
  ["policy_band_out_of_range", 400, "invalid_request"],
  ["policy_band_bps_required", 400, "invalid_request"],
  ["not_authenticated", 401, "unauthenticated"],
  ["invalid_worker_secret", 401, "unauthenticated"],
  ["insufficient_funds", 402, "insufficient_funds"],
  ["insufficient_role", 403, "forbidden"],
  ["user_session_required", 403, "forbidden"],
  ["passkey_unavailable", 403, "forbidden"],
  ["passkey_required", 403, "forbidden"],
  ["session_ceiling_exceeded", 403, "forbidden"],
  ["session_warrant_limit_reached", 403, "forbidden"],
  ["session_failure_budget_spent", 403, "forbidden"],
  ["session_expired", 403, "forbidden"],
  ["session_revoked", 403, "forbidden"],
  ["worker_secret_unset", 403, "forbidden"],
  ["warrant_not_found", 404, "not_found"],
  ["illegal_transition", 409, "invalid_state"],
  ["version_conflict", 409, "conflict"],
  ["idempotency_key_reused", 409, "conflict"],
  ["idempotency_in_flight", 409, "conflict"],
  ["idempotency_conflict", 409, "conflict"],
  ["rate_limit_exceeded", 429, "rate_limited"],
  ["internal_error", 500, "api_error"],
  ["instance_lost", 503, "unavailable"],

  ["policy_max_amount_exceeded", 403, "forbidden"],
  ["policy_not_allowed", 403, "forbidden"],
  ["agent_not_active", 403, "forbidden"],
  ["agent_key_mismatch", 403, "forbidden"],
  ["agent_id_required", 403, "forbidden"],
  ["second_person_required", 403, "forbidden"],
  ["second_factor_required", 403, "forbidden"],
  ["kill_switch_active", 403, "forbidden"],
  ["api_key_not_active", 409, "conflict"],
  ["agent_not_found", 404, "not_found"],
  ["policy_not_found", 404, "not_found"],
  ["verifier_not_found", 404, "not_found"],
  ["escalation_not_found", 404, "not_found"],
  ["webhook_not_found", 404, "not_found"],
  ["delivery_not_found", 404, "not_found"],
  ["user_not_found", 404, "not_found"],
  ["route_not_found", 404, "not_found"],
  ["passkey_not_found", 404, "not_found"],
  ["last_owner", 409, "conflict"],
];

/** The statuses and types of the envelope (docs/errors, "Errors"). */
const TYPES: Readonly<Record<number, readonly ErrorType[]>> = {
  400: ["invalid_request"],
  401: ["unauthenticated"],
  402: ["insufficient_funds"],
  403: ["forbidden"],
  404: ["not_found"],
  409: ["invalid_state", "conflict"],
  429: ["rate_limited"],
  500: ["api_error"],
  503: ["unavailable"],
};

describe("the catalogue", () => {
  for (const [code, status, type] of CATALOGUE) {
    test(`has ${code}: ${status} ${type}`, () => {
      expect(CODES).toContain(code);
      expect(statusOf(code)).toBe(status as ReturnType<typeof statusOf>);
      expect(typeOf(code)).toBe(type);
    });
  }

  test("uses every status of the envelope, and no other", () => {
    expect([...new Set(CODES.map(statusOf))].map(String).toSorted()).toEqual(Object.keys(TYPES));
  });

  test("gives each status one type, but for the illegal transition", () => {
    for (const code of CODES) {
      const [first, other] = TYPES[statusOf(code)]!;
      expect([code, typeOf(code)]).toEqual([
        code,
        code === "illegal_transition" ? first! : (other ?? first!),
      ]);
    }
  });

  test("gives each type one status", () => {
    for (const type of Object.values(TYPES).flat()) {
      const statuses = new Set(CODES.filter((code) => typeOf(code) === type).map(statusOf));
      expect([type, statuses.size]).toEqual([type, 1]);
    }
  });

  test("says each cause as a sentence, under a code in snake case", () => {
    for (const code of CODES) {
      expect(code).toMatch(/^[a-z0-9]+(_[a-z0-9]+)*$/);
      expect(ERRORS[code][1]).toMatch(/^[A-Z].*\.$/);
    }
  });
});

describe("a refusal", () => {
  test("is a code and a message", () => {
    expect(refuse("insufficient_funds", "not enough")).toEqual({
      refused: "insufficient_funds",
      message: "not enough",
    });
  });

  test("of a field names its path first", () => {
    expect(refuseField("spec.clauses.0.schema", "must be a string")).toEqual({
      refused: "validation_failed",
      message: "spec.clauses.0.schema: must be a string",
    });
  });

  const OTHERS: readonly unknown[] = [null, undefined, "refused", 1, true, {}, [], { message: "refused" }];
  for (const value of OTHERS) {
    test(`is not ${JSON.stringify(value)}`, () => expect(isRefusal(value)).toBeFalse());
  }

  test("is known as one", () => {
    expect(isRefusal(refuse("not_authenticated", ""))).toBeTrue();
    expect(isRefusal(refuseField("amount", ""))).toBeTrue();
  });
});
