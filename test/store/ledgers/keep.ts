import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Needs } from "../../../src/store/needs.ts";
import { connect, ledgerFile } from "../../../src/store/sqlite/open.ts";
import { createTestContext } from "../../support/context.ts";
import { buildGoodLedger } from "../../support/good-ledger.ts";
import { SCRIPTED } from "../../support/stage.ts";
import { type KeptLedger, type KeptRequest, replayAll, showAll } from "./kept-ledger.ts";

/**
 * `bun test/store/ledgers/keep.ts VERSION` keeps the ledger that this version writes, with the answers that it gave. It is run
 * once for every version that changes the tables or an encoding; every later version opens what was kept.
 */
const [version] = process.argv.slice(2);
if (version === undefined) throw new Error("say which version this is");

const ctx = createTestContext(SCRIPTED);
/** The requests by their key, or by the warrant whose check ends them. */
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
