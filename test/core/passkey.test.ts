import { describe, expect, test } from "bun:test";
import { isRefusal } from "../../src/core/errors.ts";
import type { PasskeyApproval } from "../../src/core/passkey.ts";
import {
  approvalOfCorrection,
  challengeOf,
  counterRose,
  countsForThreshold,
  isAboveThreshold,
  refuseOpenAbove,
  refuseUnsigned,
  relyingPartyOf,
  type SignedDecision,
  statementOf,
  submissionOf,
} from "../../src/core/passkey.ts";

/** The rules of passkeys (docs/people, "Passkeys" and "The threshold"). */

test("passkeys belong to a host name, by https or on localhost", () => {
  for (const [baseUrl, id] of [
    ["http://localhost:8080", "localhost"],
    ["https://localhost", "localhost"],
    ["http://app.localhost:1", "app.localhost"],
    ["https://holdfast.example", "holdfast.example"],
    ["https://Holdfast.Example:8443/path", "holdfast.example"],
    ["http://holdfast.example", null],
    ["http://notlocalhost", null],
    ["http://localhost.example", null],
    ["http://127.0.0.1:8080", null],
    ["https://127.0.0.1", null],
    ["https://0x7f.1", null],
    ["https://[::1]:8080", null],
  ] as const) {
    const party = relyingPartyOf(baseUrl);
    expect([baseUrl, isRefusal(party) ? null : party.id]).toEqual([baseUrl, id]);
    if (isRefusal(party))
      expect([party.refused, party.message]).toEqual([
        "passkey_unavailable",
        expect.stringContaining("HOLDFAST_BASE_URL"),
      ]);
    else expect(party.origin).toBe(new URL(baseUrl).origin);
  }
});

test("within 24 hours of a reset a passkey does not count", () => {
  const DAY_MS = 86_400_000;
  for (const [resetAt, enrolledAt, counts] of [
    [null, 0, true],
    [5, 5, false],
    [5, 5 + DAY_MS - 1, false],
    [5, 5 + DAY_MS, true],
    [5, 4, false],
  ] as const) {
    expect(countsForThreshold(resetAt, enrolledAt)).toBe(counts);
  }
});

test("a signature counter must rise, unless none is kept", () => {
  for (const [before, after, rose] of [
    [0, 0, true],
    [0, 1, true],
    [1, 2, true],
    [1, 1, false],
    [2, 1, false],
    [1, 0, false],
  ] as const) {
    expect(counterRose(before, after)).toBe(rose);
  }
});

test("an amount in USDC is above where it is more than the threshold; any other asset is always above", () => {
  for (const [threshold, amount, asset, above] of [
    [null, 10n ** 18n, "USDC", false],
    [null, 1n, "EUR", false],
    [100n, 100n, "USDC", false],
    [100n, 101n, "USDC", true],
    [0n, 1n, "USDC", true],
    [2n ** 63n - 1n, 2n ** 63n - 1n, "USDC", false],
    [100n, 1n, "EUR", true],
    [100n, 1n, "usdc", true],
  ] as const) {
    expect(isAboveThreshold(threshold, { amount, asset })).toBe(above);
    const opened = refuseOpenAbove(threshold, { amount, asset }, false);
    expect(opened?.refused ?? null).toBe(above ? "passkey_unavailable" : null);
    const withPasskey = refuseOpenAbove(threshold, { amount, asset }, true);
    expect(withPasskey?.refused ?? null).toBe(above && asset !== "USDC" ? "passkey_unavailable" : null);
  }
});

describe("a signature", () => {
  const decided: SignedDecision = {
    userId: "usr_1",
    subject: "wrt_1",
    version: 2,
    decision: "partial_release",
    releasedBps: 5_000,
  };
  const approval: PasskeyApproval = {
    ...decided,
    tokenHash: "hash",
    passkeyId: "passkey",
    assertion: "{}",
    createdAt: 0,
    expiresAt: 100,
    usedAt: null,
  };
  const refused = (
    changed: Partial<PasskeyApproval> | null,
    { passkeyIds = ["passkey"], now = 99 }: { readonly passkeyIds?: string[]; readonly now?: number } = {},
  ) => {
    const shown = { approval: changed && { ...approval, ...changed }, passkeyIds };
    return refuseUnsigned("is above the passkey threshold 100", decided, shown, now);
  };

  test("of this person, over this decision, fresh and unused, is enough", () => {
    expect(refused({})).toBeNull();
  });

  test("for anything else is not enough", () => {
    for (const [changed, words] of [
      [null, "fresh signature"],
      [{ userId: "usr_2" }, "fresh signature"],
      [{ usedAt: 0 }, "was used already"],
      [{ expiresAt: 99 }, "has expired"],
      [{ subject: "wrt_2" }, "another warrant"],
      [{ version: 1 }, "another version"],
      [{ version: 3 }, "another version"],
      [{ decision: "release" }, "another decision"],
      [{ decision: "refund", releasedBps: null }, "another decision"],
      [{ releasedBps: 4_999 }, "another share"],
      [{ releasedBps: null }, "another share"],
      [{ passkeyId: "other" }, "was removed"],
    ] as const) {
      const refusal = refused(changed);
      expect([refusal?.refused, refusal?.message]).toEqual([
        "passkey_required",
        expect.stringContaining(words),
      ]);
    }
  });

  test("of a person without a passkey that counts is unavailable, whatever approval they have", () => {
    for (const changed of [null, {}]) {
      expect(refused(changed, { passkeyIds: [] })?.refused).toBe("passkey_unavailable");
    }
  });

  test("is over a challenge that no other decision has", () => {
    const statement = statementOf(decided, "nonce");
    // Computed without this code: printf '{"decision":…,"version":2,"warrant_id":"wrt_1"}' | sha256sum, as base64url.
    expect(challengeOf(statement)).toBe("G6x---M-MtvvfxckYZmafNNF5o1gxJ7_qUeXKpkrhoA");
    const others = [
      statementOf(decided, "other"),
      statementOf({ ...decided, userId: "usr_2" }, "nonce"),
      statementOf({ ...decided, subject: "wrt_2" }, "nonce"),
      statementOf({ ...decided, version: 3 }, "nonce"),
      statementOf({ ...decided, decision: "release" }, "nonce"),
      statementOf({ ...decided, releasedBps: 4_999 }, "nonce"),
      statementOf(approvalOfCorrection("usr_1", "wrt_1"), "nonce"),
      statementOf(approvalOfCorrection("usr_2", "wrt_1"), "nonce"),
      statementOf(approvalOfCorrection("usr_1", "cor_1"), "nonce"),
      statementOf(submissionOf("usr_1", "wrt_1"), "nonce"),
      statementOf(submissionOf("usr_2", "wrt_1"), "nonce"),
      statementOf(submissionOf("usr_1", "00"), "nonce"),
      statementOf(submissionOf("usr_1", "00"), "other"),
    ];
    expect(new Set([statement, ...others].map(challengeOf)).size).toBe(1 + others.length);
  });
});
