import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ApiKey, hashSecret } from "../../src/core/api-key.ts";
import { deposit } from "../../src/core/postings.ts";
import type { Change, Put } from "../../src/store/change.ts";
import type { Scope } from "../../src/store/scope.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { BEGIN, watchStatements } from "../support/failing-statements.ts";
import { createCaller, createStage } from "../support/stage.ts";
import type { FailingStatements } from "../support/statement-faults.ts";

/** What was undone was never there: nothing that a process remembers of it may outlive it. */

let ctx: TestContext;
let scope: Scope;
let agentId: string;
let failing: FailingStatements;
beforeAll(async () => {
  failing = watchStatements();
  ctx = createTestContext();
  const stage = await createStage(ctx);
  scope = { organisationId: stage.organisationId, mode: "live" };
  agentId = (await createCaller(stage)).agentId;
});
afterAll(async () => {
  await ctx.close();
  failing.restore();
});

const write = (change: Change) =>
  ctx.store.execute({ scope, needs: {}, decide: () => ({ answer: true, change }) });

/** A write that SQLite refuses, after the others of its Change were made. */
const REFUSED = { kind: "policy", row: { id: "pol_none" } } as unknown as Put;

const newKey = (secretHash: string): ApiKey => ({
  id: ctx.newId("apiKey"),
  ...scope,
  agentId,
  secretHash,
  lastFour: "last",
  createdAt: ctx.now(),
  expiresAt: null,
  lastUsedAt: null,
  revokedAt: null,
});

describe("an API key whose commit failed, at whatever statement", () => {
  test("is not known, also after the next commit", async () => {
    const put = (row: ApiKey) => ({ kind: "apiKey", before: null, row }) as const;
    const hashOf = (name: string) => hashSecret(name);
    const failedAt: string[] = [];
    for (let statement = 1; ; statement++) {
      const [undone, made] = [newKey(hashOf(`undone ${statement}`)), newKey(hashOf(`made ${statement}`))];
      const fault = { transaction: 1, statement, when: "before" } as const;
      const { sql } = await failing.during(fault, () => write({ put: [put(undone)] }).catch(() => null));
      if (sql === null) break;
      failedAt.push(sql);
      await write({ put: [put(made)] });
      expect(await ctx.store.apiKey(made.secretHash)).toEqual(made);
      expect([sql, await ctx.store.apiKey(undone.secretHash)]).toEqual([sql, null]);
    }
    expect(failedAt).toEqual(expect.arrayContaining([BEGIN, "COMMIT"]));
  });
});

describe("a position that was given out, and then undone", () => {
  const newDeposit = () => ({
    id: ctx.newId("deposit"),
    ...scope,
    asset: "USDC",
    amount: 7n,
    reference: null,
    createdAt: 0,
  });
  const put = (row: ReturnType<typeof newDeposit>) => ({ kind: "deposit", row }) as const;
  const posted = ({ id, amount }: ReturnType<typeof newDeposit>) =>
    ({
      kind: "posting",
      row: {
        ...scope,
        asset: "USDC",
        kind: "deposit",
        causeId: id,
        payee: null,
        legs: deposit(amount),
        recordedAt: 0,
      },
    }) as const;

  test("is the next row's, and nobody else's", async () => {
    const [undone, made] = [newDeposit(), newDeposit()];
    await expect(write({ put: [put(undone), REFUSED] })).rejects.toThrow();
    await write({ put: [put(made), posted(made)] });
    // A second posting for the deposit that is there would be refused as such.
    await expect(write({ put: [posted(undone)] })).rejects.toThrow(`the ledger has no deposit ${undone.id}`);
  });
});
