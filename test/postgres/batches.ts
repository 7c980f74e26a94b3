/** Commands of one organisation that come together share one transaction, whatever each of them writes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import {
  ALL_PASS,
  createCaller,
  createStage,
  must,
  open,
  settle,
  verify,
  warrantIn,
} from "../support/stage.ts";
import { createConnections } from "./connections.ts";
import { openInstance } from "./store-context.ts";

const TEST_MS = 120_000;

let postgres: Postgres;
const { connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

test(
  "openings, releases, refunds and deposits are one transaction, in any order",
  async () => {
    const url = await postgres.createDatabase();
    const sql = connectTo(url);
    const { ctx, close } = await openInstance(url);
    const stage = await createStage(ctx as never);
    const organisation = { organisation_id: stage.organisationId };
    const agent = await createCaller(stage);
    const opened = async () => warrantIn(must(await open(stage, stage.operator))).id;
    const commits = async () => (await sql`SELECT count(*)::int4 AS n FROM commits`)[0].n as number;

    const held: string[] = [];
    for (let at = 0; at < 6; at++) held.push(await opened());
    const [toRelease = "", toRefund = "", toShare = ""] = held;
    const fund = (reference: string, asset = "USDC") =>
      fundBalance(ctx, MACHINE, { ...organisation, mode: "live", asset, amount: "7", reference });
    const works: readonly (() => Promise<unknown>)[] = [
      () => open(stage, stage.operator),
      () => settle(stage, stage.operator, toRelease, "release"),
      () => fund("first"),
      () => settle(stage, stage.operator, toRefund, "refund"),
      () => open(stage, stage.operator),
      () => fund("second", "EURC"),
      () => settle(stage, stage.operator, toShare, "partial_release", { releasedBps: 5_000 }),
    ];
    const before = await commits();
    for (const answer of await Promise.all(works.map((work) => work()))) must(answer as never);
    expect((await commits()) - before).toBe(1);

    must(await verify(stage, agent, warrantIn(must(await open(stage, agent))).id, ALL_PASS));
    await close();
  },
  TEST_MS,
);
