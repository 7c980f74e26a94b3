import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { KeyCaller } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import type { Context } from "../../src/services/context.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { runDeliveries } from "../../src/services/webhooks/deliver.ts";
import { auditByWitness } from "../../src/services/witness/audit.ts";
import { offerCheckpoint } from "../../src/services/witness/offer.ts";
import { ownLogOf } from "../../src/services/witness/own-log.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import type { Reader } from "../../src/store/reader.ts";
import { createTestContext, NO_WITNESSES, type TestContext } from "../support/context.ts";
import { asksExactOnBase, delivers, openMarket, SELLER_URL } from "../support/market.ts";
import { noFault } from "../support/no-fault.ts";
import {
  createCaller,
  createStage,
  idempotencyOf,
  must,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../support/stage.ts";

/**
 * What is read is let go before anything goes out to the network: a snapshot that waits for a slow source would keep one of a
 * few connections, and the write-ahead log from shrinking.
 */

let ctx: TestContext;
let stage: Stage;
let caller: KeyCaller;
/** How many snapshots are in use. */
let held = 0;
/** What went out to the network, each with the snapshots that were in use then. */
const wentOut: [name: string, held: number][] = [];
beforeEach(() => void wentOut.splice(0));

/** The same call, which notes what is held when it goes out. */
const network =
  <Given extends readonly unknown[], Answer>(name: string, send: (...given: Given) => Promise<Answer>) =>
  async (...given: Given): Promise<Answer> => {
    // What let go of its snapshot just now has ended by then.
    await new Promise(setImmediate);
    wentOut.push([name, held]);
    return send(...given);
  };

const market = openMarket();
beforeAll(async () => {
  const { x402 } = market;
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: network("source", SCRIPTED.fetchEvidence),
    sendWebhook: network("webhook", async () => ({ code: 200, responseStart: "", durationMs: 1 })),
    x402: {
      ...x402,
      ask: network("seller", x402.ask),
      pay: network("paid seller", x402.pay),
      chains: {
        ids: [8_453],
        find: network("chain", x402.chains.find),
        balanceOf: network("balance", x402.chains.balanceOf),
      },
    },
    witness: { ...NO_WITNESSES, witnesses: [WITNESS], ask: network("witness", NO_WITNESSES.ask) },
  });
  stage = await createStage(ctx);
  caller = await createCaller(stage);
  const { read } = ctx.store;
  const counted: Context["store"]["read"] = (use: (reader: Reader) => unknown) =>
    read(async (reader) => {
      held += 1;
      try {
        return (await use(reader)) as never;
      } finally {
        held -= 1;
      }
    });
  Object.assign(ctx.store, { read: counted });
});
afterAll(async () => {
  await ctx.deliverySlots.close();
  await ctx.close();
});

const WITNESS = { key: (await NO_WITNESSES.signer()).key, url: "https://w.example/witness" };

test("nothing is held while a source is fetched", async () => {
  const { id } = warrantIn(await open(stage, caller));
  must(await verify(stage, caller, id));
  expect(wentOut).toEqual([["source", 0]]);
});

test("nothing is held while a seller is asked and paid, nor while a chain is asked", async () => {
  const order = {
    url: SELLER_URL,
    max_amount: "100",
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  } as const;
  must(await payForUrl(ctx, caller, order, idempotencyOf()));
  expect(wentOut).toEqual([
    ["seller", 0],
    ["paid seller", 0],
  ]);
  Object.assign(market, {
    first: asksExactOnBase("100"),
    balance: 1_000n,
    blockTime: ctx.now(),
    findings: ["unused"],
    paid: () => delivers({}),
  });
  must(await payForUrl(ctx, caller, order, idempotencyOf()));
  expect(new Set(wentOut.map(([name]) => name))).toContain("balance");
  expect(wentOut.filter(([, snapshots]) => snapshots > 0)).toEqual([]);
});

test("nothing is held while an event is delivered", async () => {
  must(
    await createWebhook(ctx, MACHINE, {
      ...stage,
      organisation_id: stage.organisationId,
      url: "https://h.example/",
      events: [],
    }),
  );
  await open(stage, caller);
  await runDeliveries(ctx, noFault);
  expect(wentOut).toEqual([["webhook", 0]]);
});

test("nothing is held while a witness is asked", async () => {
  await anchor(ctx);
  const log = await ownLogOf(ctx);
  const newest = await log.newest();
  if (newest === null) throw new Error("nothing is signed");
  await offerCheckpoint(ctx, log, WITNESS, newest, 0);
  await auditByWitness(ctx, WITNESS.url);
  expect(wentOut.length).toBeGreaterThan(1);
  expect(wentOut.filter(([, snapshots]) => snapshots > 0)).toEqual([]);
});
