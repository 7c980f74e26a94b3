import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { isRefusal } from "../../src/core/errors.ts";
import { KNOWN, type Purchase } from "../../src/core/x402/purchase.ts";
import type { Change } from "../../src/store/change.ts";
import { OLDEST_KNOWN_MAX } from "../../src/store/followed-indexes.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { PAY_TO, SELLER_URL, USDC } from "../support/market.ts";
import { createStage, fresh, open, type Stage, warrantIn } from "../support/stage.ts";

/**
 * What a command finds of capsules and purchases does not depend on which commands share its batch: each finds what it would
 * find if those before it had been committed one by one.
 */

setDefaultTimeout(60_000);
let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
// What these commands write is no check and no purchase that the service would make.
afterAll(() => ctx.close(/^(capsule|purchase) /));

const PURCHASES = 6;

/** What a command does, and what it asks besides. */
const ACTS = fc.record({
  kind: fc.constantFrom("keep", "keep", "keep", "drop the newest", "buy", "buy", "buy", "nothing"),
  /** How many capsules are asked for, and how many of these are deleted. */
  oldest: fc.constantFrom(1, 1, 3, 64, 64, 64),
  deleted: fc.constantFrom(0, 0, 1, 1, 2, 64, 64),
  bytes: fc.integer({ min: 1, max: 9 }),
  purchase: fc.nat({ max: PURCHASES - 1 }),
  /** Which of the things that may become of a purchase. */
  choice: fc.nat({ max: 5 }),
  payer: fc.constantFrom("one", "two"),
  since: fc.nat({ max: 3 }),
  content: fc.constantFrom("bought" as const, "free" as const),
});
type Act = typeof ACTS extends fc.Arbitrary<infer Value> ? Value : never;

/** An organisation that acts. Ids and wallets are those of no other. */
type Side = { readonly stage: Stage; readonly name: string; readonly warrants: readonly string[] };

async function newSide(capsules: number): Promise<Side> {
  const stage = await createStage(ctx);
  const warrants: string[] = [];
  for (let at = 0; at < PURCHASES; at++) warrants.push(warrantIn(await open(stage, stage.operator)).id);
  const side = { stage, name: fresh("side"), warrants };
  await ctx.store.execute({
    scope: stage,
    needs: {},
    decide: () => ({
      answer: null,
      change: {
        put: Array.from({ length: capsules }, (_, at) => capsuleOf(side, `before-${at}`, 1, at)),
      },
    }),
  });
  return side;
}

const capsuleOf = (
  { stage: { organisationId, mode }, name }: Side,
  id: string,
  bytes: number,
  kept: number,
) => ({
  kind: "capsule" as const,
  before: null,
  row: {
    ...{ id: `${name}/${id}`, organisationId, mode, facts: "{}", storedHash: null, parts: 0 },
    ...{ bytes, bytesUntil: kept + bytes, createdAt: 0 },
  },
});

const tokenOf = ({ name }: Side, payer: string) => ({
  ...{ payer: `${name}/${payer}`, chainId: 8_453, contract: USDC.contract },
});

/** What becomes of a purchase next. */
function bought(
  side: Side,
  at: number,
  before: Purchase | null,
  { purchase, choice, bytes, payer }: Act,
): Change {
  const { organisationId, mode } = side.stage;
  const put = (row: Purchase): Change => ({ put: [{ kind: "purchase", before, row }] });
  if (before === null) return put(quotingOf(`${side.name}/${purchase}`, { organisationId, mode }));
  const ended = { phase: "ended" as const, endedAt: at };
  const known = KNOWN[choice % 3]!;
  if (before.phase === "quoting") {
    if (choice === 0) return { put: [], deleted: [{ kind: "purchase", row: before }] };
    if (choice === 1) return put({ ...before, ...ended, contentBytes: bytes });
    const token = tokenOf(side, payer);
    const pays = { kind: "exact" as const, protocol: 2 as const, network: "base", payTo: PAY_TO };
    const of = { tokenName: "USDC", tokenVersion: "2", entry: {}, resource: null };
    return put({
      ...{ ...before, phase: "held", warrantId: side.warrants[purchase]!, contentBytes: bytes },
      ...{ payer: token.payer, nonce: `${side.name}/${purchase}/${at}` },
      quote: {
        ...{ amount: BigInt(bytes), asset: "USDC", payee: "acme", timeoutSeconds: null },
        pays:
          choice === 2
            ? { kind: "voucher" }
            : { ...pays, ...of, chainId: token.chainId, contract: token.contract },
      },
    });
  }
  if (before.phase === "held")
    return put({
      ...before,
      ...ended,
      known,
      answeredAt: choice < 3 ? null : choice - 2,
      contentBytes: choice,
    });
  return put({ ...before, known: before.known === "unknown" ? known : before.known, contentBytes: 0 });
}

const quotingOf = (id: string, scope: Pick<Purchase, "organisationId" | "mode">): Purchase => ({
  ...{ id, ...scope, agentId: null, method: "GET", url: SELLER_URL, maxAmount: 9n, phase: "quoting" },
  ...{
    quote: null,
    warrantId: null,
    payer: null,
    nonce: null,
    validBefore: null,
    header: null,
    attempt: null,
  },
  ...{ known: null, knownBy: null, chainSaid: null, acknowledgedAt: null, transaction: null },
  ...{
    responseStatus: null,
    responseHash: null,
    responseLastModifiedAt: null,
    contentBytes: 0,
    createdAt: 0,
  },
  ...{ answeredAt: null, endedAt: null, nextCheckAt: null, chainSilentSince: null },
});

/** Does one thing. Answers what it found, without the side's name. */
async function act(side: Side, one: Act, at: number): Promise<unknown> {
  const found = await ctx.store.execute({
    scope: side.stage,
    needs: {
      oldestCapsules: one.oldest,
      newestCapsule: true,
      contentBytes: one.content,
      oldestFree: true,
      openAuthorizations: { ...tokenOf(side, one.payer), since: one.since },
      purchase: `${side.name}/${one.purchase}`,
    },
    decide({ oldestCapsules, newestCapsule, contentBytes, oldestFree, openAuthorizations, purchase }) {
      const answer = {
        oldest: oldestCapsules.map(({ id }) => id),
        newest: newestCapsule && [newestCapsule.id, newestCapsule.bytesUntil],
        ...{ contentBytes, open: String(openAuthorizations), phase: purchase?.phase ?? null },
        free: oldestFree.map(({ id, contentBytes: bytes }) => [id, bytes]),
      };
      switch (one.kind) {
        case "keep": {
          const deleted = oldestCapsules
            .slice(0, one.deleted)
            .map((row) => ({ kind: "capsule" as const, row }));
          const put = [capsuleOf(side, `${at}`, one.bytes, newestCapsule?.bytesUntil ?? 0)];
          return { answer, change: { put, deleted } };
        }
        case "drop the newest": {
          const deleted = newestCapsule ? [{ kind: "capsule" as const, row: newestCapsule }] : [];
          return { answer, change: { put: [], deleted } };
        }
        case "buy":
          return { answer, change: bought(side, at, purchase, one) };
        default:
          return { answer };
      }
    },
  });
  if (isRefusal(found)) throw new Error(found.message);
  return JSON.parse(JSON.stringify(found).replaceAll(`${side.name}/`, ""));
}

test("commands find in a batch what they find one by one", () =>
  fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 3, 64, OLDEST_KNOWN_MAX - 1, OLDEST_KNOWN_MAX, 200, 300, 400),
      fc.array(ACTS, { maxLength: 5 }),
      fc.array(ACTS, { minLength: 2, maxLength: 90 }),
      async (capsules, before, acts) => {
        const sides = [await newSide(capsules), await newSide(capsules)] as const;
        for (const side of sides) for (const [at, one] of before.entries()) await act(side, one, at);
        const together = await Promise.all(acts.map((one, at) => act(sides[0], one, before.length + at)));
        const apart: unknown[] = [];
        for (const [at, one] of acts.entries()) apart.push(await act(sides[1], one, before.length + at));
        expect(together).toEqual(apart);
      },
    ),
    { numRuns: 100 },
  ));
