import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join, resolve } from "node:path";
import { publicKeysOf } from "../../src/app/audit-beside-server.ts";
import { AUDIT_ARGUMENT } from "../../src/app/children.ts";
import { createAuditChild } from "../../src/platform/audit-child.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, open } from "../support/stage.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

const SELF = [process.execPath, resolve(import.meta.dir, "../../src/main.ts"), AUDIT_ARGUMENT];

let ctx: TestContext;
beforeEach(async () => {
  ctx = createTestContext();
  const stage = await createStage(ctx);
  await open(stage, await createCaller(stage));
});
afterEach(() => ctx.close());

test("the audit of another process beside the server finds what is wrong, and only that", async () => {
  const child = createAuditChild([...SELF, ctx.folder, publicKeysOf(ctx)]);
  await anchor(ctx);
  expect(await child.audit()).toEqual([]);
  const database = new Database(join(ctx.folder, "holdfast.db"));
  const guard = "accounts_follow_their_postings";
  const { sql } = database
    .query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE name = ?")
    .get(guard)!;
  database.run(`DROP TRIGGER ${guard}`);
  const change = (amount: number) => {
    database.run("UPDATE accounts SET available = available + ?, funding = funding - ?", [amount, amount]);
  };
  change(1);
  const found = await child.audit();
  change(-1);
  expect(found).toContain(`trigger ${guard} is not as Holdfast makes it`);
  expect(found.join()).toContain("available");
  database.run(sql);
  expect(await child.audit()).toEqual([]);
  database.close();
  // It knows the public keys, and no others.
  const strange = { ...ctx, tokens: createTokens(newSigningKey()) };
  expect(await createAuditChild([...SELF, ctx.folder, publicKeysOf(strange)]).audit()).toEqual([
    "checkpoint 1: no key of this instance signed it",
  ]);
});

test("an audit that could not be made is a fault, not an audit without findings", async () => {
  const code = 'console.error("no such thing"); process.exit(3)';
  const failing = createAuditChild([process.execPath, "-e", code]);
  expect(failing.audit()).rejects.toThrow("the audit was not made (3): no such thing");
  await failing.audit().catch(() => {});
});

test("a stop ends the audit that is under way", async () => {
  const endless = createAuditChild([process.execPath, "-e", "setInterval(() => {}, 1_000)"]);
  const running = endless.audit();
  endless.stop();
  expect(await running).toEqual([]);
});

test("an audit ends with its parent, also one that is killed, and while it reads", async () => {
  const audits = `
    import { createAuditChild, runAuditChild } from ${JSON.stringify(resolve(import.meta.dir, "../../src/platform/audit-child.ts"))};
    if (process.argv[2] === "child") {
      await runAuditChild(() => {
        console.error(process.pid);
        for (;;);
      });
    }
    // The parent reads what its child prints on stderr.
    Bun.spawn = ((spawn) => (command, options) => spawn(command, { ...options, stderr: "inherit" }))(Bun.spawn);
    await createAuditChild([process.execPath, import.meta.path, "child"]).audit();
  `;
  const file = join(ctx.folder, "audits.ts");
  await Bun.write(file, audits);
  const parent = Bun.spawn([process.execPath, file], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const said = parent.stderr.getReader();
  const { value } = await said.read();
  expect(Number(new TextDecoder().decode(value))).toBeGreaterThan(0);
  parent.kill("SIGKILL");
  // The audit has the other end of this pipe. It has ended when the pipe ends.
  expect(await said.read()).toMatchObject({ done: true });
});
