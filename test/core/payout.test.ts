import { expect, test } from "bun:test";
import { batchDigest, totalsOf } from "../../src/core/payout.ts";

const scope = { organisationId: "org_1", mode: "live" } as const;
const acme = { payee: "acme", asset: "USDC", amount: 600n };
const other = { payee: "Łucja", asset: "EUR", amount: 2n ** 64n };

test("the digest of a batch is the one that the documentation says", () => {
  // Computed without this code: printf '{"mode":"live",…}' | sha256sum.
  expect(batchDigest(scope, [acme, other])).toBe(
    "174503594cababd018a0388c1ac5c2b37e1a91b6b6b90b2722141819d2d9cb0e",
  );
});

test("no other batch has its digest", () => {
  const digests = [
    batchDigest(scope, [acme, other]),
    batchDigest({ ...scope, mode: "sandbox" }, [acme, other]),
    batchDigest({ ...scope, organisationId: "org_2" }, [acme, other]),
    batchDigest(scope, [other, acme]),
    batchDigest(scope, [acme]),
    batchDigest(scope, [acme, acme, other]),
    batchDigest(scope, []),
    batchDigest(scope, [{ ...acme, payee: "acme " }, other]),
    batchDigest(scope, [{ ...acme, asset: "EUR" }, other]),
    batchDigest(scope, [{ ...acme, amount: 601n }, other]),
  ];
  expect(new Set(digests).size).toBe(digests.length);
});

test("payouts are summed asset by asset", () => {
  expect(totalsOf([acme, other, { ...acme, payee: "b", amount: 1n }])).toEqual([
    { asset: "USDC", amount: 601n },
    { asset: "EUR", amount: 2n ** 64n },
  ]);
  expect(totalsOf([])).toEqual([]);
});
