import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Passkey, PasskeyApproval } from "../../../src/core/passkey.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../../src/services/admin/password-resets.ts";
import { createWebhook } from "../../../src/services/admin/webhooks.ts";
import { runDeliveries } from "../../../src/services/webhooks/deliver.ts";
import type { Needs } from "../../../src/store/needs.ts";
import { ledgerFile } from "../../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../../src/store/sqlite/open.ts";
import { createTestContext } from "../../support/context.ts";
import { buildGoodLedger } from "../../support/good-ledger.ts";
import { buildGoodPurchases } from "../../support/good-purchases.ts";
import { openMarket } from "../../support/market.ts";
import { noFault } from "../../support/no-fault.ts";
import { createStage, must, SCRIPTED, type Stage } from "../../support/stage.ts";
import { type KeptLedger, type KeptRequest, replayAll, showAll } from "./kept-ledger.ts";

/**
 * `bun test/store/ledgers/keep.ts VERSION` keeps the ledger that this version writes, with the answers that it gave. It is run
 * once for every version that changes the tables or an encoding; every later version opens what was kept.
 */
const [version] = process.argv.slice(2);
if (version === undefined) throw new Error("say which version this is");

const market = openMarket();
const ctx = createTestContext({ x402: market.x402 });
/** By the key, or by the warrant whose check ends it. */
const begun = new Map<string, KeptRequest>();
const answered = new Map<KeptRequest, string>();
const { execute } = ctx.store;
Object.assign(ctx.store, {
  async execute(command: { readonly scope: never; readonly needs: Needs }) {
    const answer: unknown = await execute(command as never);
    const { idempotencyKey: key, heldKey } = command.needs;
    if (key !== undefined) begun.set(key, { caller: command.scope, key });
    const request = begun.get(key ?? heldKey ?? "");
    const { body, replayed, id } = (answer ?? {}) as { body?: string; replayed?: boolean; id?: string };
    if (request && id !== undefined) begun.set(id, request);
    if (request && body !== undefined && replayed === false) answered.set(request, body);
    return answer as never;
  },
});
const stage = await createStage(ctx, { mode: "sandbox", funds: "10000" });
const endpoint = { organisation_id: stage.organisationId, mode: stage.mode, url: "http://hook.example/" };
must(await createWebhook(ctx, MACHINE, endpoint));
await buildGoodPurchases(stage, market);
await runDeliveries(ctx, noFault);
await signsDecisions(stage);
must(await issuePasswordReset(ctx, MACHINE, { user_id: stage.operator.userId }));
Object.assign(ctx, SCRIPTED);
await buildGoodLedger(ctx);
const requests = [...answered.keys()];
const answers = [...answered.values()];
const kept: KeptLedger = { requests, answers, shown: await showAll(ctx, requests) };
const replays = await replayAll(ctx, requests);
if (JSON.stringify(replays) !== JSON.stringify(answers)) throw new Error("a replay is not what was answered");
await ctx.store.close();

const { raw } = connect(ledgerFile(ctx.folder), { readonly: false });
raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
raw.close();
const file = join(import.meta.dir, version);
writeFileSync(`${file}.db.gz`, Bun.gzipSync(readFileSync(ledgerFile(ctx.folder)), { level: 9 }));
writeFileSync(`${file}.json`, `${JSON.stringify(kept, null, 2)}\n`);
rmSync(ctx.folder, { recursive: true });
console.log(`kept as ${file}.db.gz and .json; there are ${readdirSync(import.meta.dir).join(", ")}`);
process.exit(0);

/** A person's passkey, with one approval that was used and one that was not. */
async function signsDecisions({ owner }: Stage): Promise<void> {
  const { organisationId, userId } = owner;
  const [createdAt, expiresAt] = [ctx.now(), ctx.now() + 120_000];
  const passkey: Passkey = {
    ...{ id: "AAAA", organisationId, userId, name: "Laptop", publicKey: "pQEC", counter: 7 },
    ...{ transports: ["internal"], countsForThreshold: true, createdAt, lastUsedAt: createdAt },
  };
  const approval = (tokenHash: string, usedAt: number | null): PasskeyApproval => ({
    ...{ tokenHash, userId, passkeyId: passkey.id, subject: "wrt_1", version: 3, decision: "release" },
    ...{ releasedBps: null, assertion: "{}", createdAt, expiresAt, usedAt },
  });
  await ctx.store.execute({
    scope: owner,
    needs: {},
    decide: () => ({
      answer: null,
      change: {
        put: [
          { kind: "passkey", before: null, row: passkey },
          { kind: "passkeyApproval", before: null, row: approval("00", createdAt) },
          { kind: "passkeyApproval", before: null, row: approval("01", null) },
        ],
      },
    }),
  });
}
