import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { chainAnchoring } from "../../src/app/anchoring.ts";
import { startServer } from "../../src/app.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { begunJobs } from "../support/begun-jobs.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { must } from "../support/organisations.ts";
import { markRestored } from "../support/restored.ts";
import { testSettings } from "../support/server.ts";
import { createCaller, createStage, open, settle, warrantIn } from "../support/stage.ts";

/** How a server anchors the log on a chain, as far as its settings and its log go. */

const KEY = `0x${"1f".repeat(32)}` as const;
const PROVIDERS_KEY = "the-key-of-the-provider";

let ctx: TestContext;
let asked: string[];
let node: { readonly port: number | undefined; stop(now: boolean): unknown };
let printed: jest.Mock;
let lines: string[];
beforeEach(async () => {
  ctx = createTestContext();
  [asked, lines] = [[], []];
  node = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { method, id } = (await request.json()) as { method: string; id: number };
      asked.push(method);
      const error = { code: -32_000, message: "no more requests today" };
      return Response.json({ jsonrpc: "2.0", id, error });
    },
  });
  printed = jest.spyOn(process.stderr, "write").mockImplementation((line) => {
    lines.push(String(line));
    return true;
  });
});
afterEach(async () => {
  printed.mockRestore();
  node.stop(true);
  await ctx.close();
});

const settings = () => ({
  HOLDFAST_ANCHOR: "evm",
  HOLDFAST_ANCHOR_RPC: `eip155:84532=http://127.0.0.1:${node.port}/${PROVIDERS_KEY}`,
});
const config = () => must(readConfig(testSettings(ctx.folder), settings()));
const anchoring = () => chainAnchoring(ctx, config(), { ...NO_SECRETS, anchorKey: KEY });

async function grow(): Promise<void> {
  const stage = await createStage(ctx);
  await open(stage, await createCaller(stage));
  await anchor(ctx);
}

test("without a wallet a server does not start, and says what to set", async () => {
  expect(await startServer(config())).toMatchObject({
    refused: "validation_failed",
    message: expect.stringMatching(/^HOLDFAST_ANCHOR_KEY: must be set where HOLDFAST_ANCHOR is evm/),
  });
});

test("without the setting there is no job, and nothing is late", () => {
  const { jobs, lateMs } = chainAnchoring(ctx, must(readConfig({}, {})), { ...NO_SECRETS, anchorKey: KEY });
  expect([jobs, lateMs()]).toEqual([[], null]);
});

test("a node that refuses is a warning with chain and wallet, and neither with the key nor with the endpoint", async () => {
  await grow();
  const { jobs, lateMs } = anchoring();
  await begunJobs(jobs, ctx)[0]!.run();
  expect(asked[0]).toBe("eth_chainId");
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    {
      ...{ time: expect.any(String), level: "warning", chain: "eip155:84532", why: "no_answer" },
      message: "the chain of the log's anchors does not answer; it is asked again",
      wallet: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    },
  ]);
  expect(lines.join("")).not.toContain("1f1f1f");
  expect(lines.join("")).not.toContain(PROVIDERS_KEY);
  expect(lateMs()).toBeGreaterThanOrEqual(0);
});

test("a restored ledger asks no chain and signs nothing before it is acknowledged", async () => {
  await grow();
  await markRestored(ctx);
  const jobs = begunJobs(anchoring().jobs, ctx);
  await jobs[0]!.run();
  expect(asked).toEqual([]);
  await markRestored(ctx, { acknowledgedAt: ctx.now() });
  await jobs[0]!.run();
  expect(asked).not.toEqual([]);
});

test("while a node never answers, warrants settle, and the log's own job signs checkpoints", async () => {
  const silent = Promise.withResolvers<Response>();
  const asking = Promise.withResolvers<void>();
  const hanging = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      asking.resolve();
      return silent.promise;
    },
  });
  const stage = await createStage(ctx);
  const { id } = warrantIn(await open(stage, stage.operator));
  await anchor(ctx);
  const settings = {
    HOLDFAST_ANCHOR: "evm",
    HOLDFAST_ANCHOR_RPC: `eip155:84532=http://127.0.0.1:${hanging.port}`,
  };
  const { jobs } = chainAnchoring(ctx, must(readConfig(testSettings(ctx.folder), settings)), {
    ...NO_SECRETS,
    anchorKey: KEY,
  });
  let hasEnded = false;
  const run = begunJobs(jobs, ctx)[0]!
    .run()
    .then(() => {
      hasEnded = true;
    });
  await asking.promise;
  expect(warrantIn(await settle(stage, stage.operator, id, "release")).state).toBe("released");
  await anchor(ctx);
  expect(ctx.reader.log.newestCheckpoint()?.size).toBe(2);
  expect(hasEnded).toBeFalse();
  silent.resolve(new Response(null, { status: 500 }));
  await run;
  await hanging.stop(true);
});
