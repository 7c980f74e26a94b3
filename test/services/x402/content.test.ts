import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { sha256 } from "../../../src/core/canonical.ts";
import type { Mode } from "../../../src/core/roles.ts";
import { FREE_BYTES_MAX, FREE_MS_MAX, RESERVED_BYTES } from "../../../src/core/x402/content.ts";
import { recoverPurchases } from "../../../src/jobs/purchases.ts";
import { countRunningTime, forgetOld } from "../../../src/jobs/retention.ts";
import {
  asksVoucher,
  delivers,
  givesAway,
  type Market,
  openMarket,
  SELLER_URL,
  silence,
} from "../../support/market.ts";
import { noFault } from "../../support/no-fault.ts";
import type { TestOrganisation } from "../../support/organisations.ts";
import { type ShellService, startTestShell } from "../../support/server.ts";

/** What is stored of sellers' answers, and for how long (docs/x402, "A retry of a purchase"). Each test's ledger is audited when it ends. */

const MIB = 1024 * 1024;
const SPEC = { clauses: [{ kind: "http.status", equals: 200 }] };

let market: Market;
let shop: ShellService;
let buyer: TestOrganisation;
/** In place of a MiB, where the size does not matter. */
const UNIT = MIB / 8;
const open = async (contentBytesMax = 1024 * MIB): Promise<void> => {
  market = openMarket();
  shop = startTestShell({ x402: { ...market.x402, contentBytesMax, freeBytesMax: 64 * UNIT } });
  buyer = await shop.organisation();
};
beforeEach(() => open());
afterEach(() => shop.close());

const pay = (key: string, who = buyer, mode: Mode = "sandbox") =>
  shop.post("/v1/x402/pay", { url: SELLER_URL, max_amount: "100", spec: SPEC }, { as: who[mode].as, key });
/** Text, since control characters would be six times as long in the answer. */
const bytesOf = (length: number, fill = 0): Uint8Array => new Uint8Array(length).fill(0x41 + fill);
const stored = (bytes: Uint8Array) => shop.ctx.reader.contents.get(sha256(bytes));
type Sum = { readonly bought: bigint; readonly bytes: bigint };
const sums = () => {
  const rows = shop.everything().content_sums as unknown as readonly Sum[];
  return rows.map(({ bought, bytes }) => [bought === 1n, Number(bytes)]);
};
const forget = () => forgetOld(shop.ctx);
const purchases = (mode: Mode = "sandbox") =>
  shop.ctx.reader.purchases.list({ organisationId: buyer.id, mode }, null, 100);

describe("what cost nothing", () => {
  test("is replayed with its body, and within the hour without: same status, empty body, and a header says so", async () => {
    market.first = givesAway("for nothing", 203);
    const first = await pay("one");
    expect([first.status, first.body.body, first.body.status]).toEqual([200, "for nothing", 203]);
    expect(first.headers.get("service-body-gone")).toBeNull();
    shop.clock.now += FREE_MS_MAX;
    await forget();
    expect((await pay("one")).text).toBe(first.text);
    shop.clock.now += 1;
    await forget();
    const gone = await pay("one");
    expect([gone.status, gone.headers.get("service-body-gone")]).toEqual([200, "true"]);
    expect(gone.headers.get("idempotent-replayed")).toBe("true");
    expect(gone.body).toEqual({ ...first.body, body: "" });
    expect(stored(Buffer.from("for nothing"))).toBeNull();
    expect(sums()).toEqual([[false, 0]]);
    expect(FREE_MS_MAX + 10 * 60_000).toBeLessThanOrEqual(3_600_000);
  });

  test("is given up too where the clock was ahead when it came", async () => {
    market.first = givesAway("early");
    shop.clock.now += 86_400_000;
    await pay("one");
    shop.clock.now -= 86_400_000;
    await forget();
    expect((await pay("one")).headers.get("service-body-gone")).toBe("true");
  });

  test("is within 64 MiB for an organisation and mode: the oldest goes first", async () => {
    const other = await shop.organisation();
    const kept: string[] = [];
    const give = async (key: string, who = buyer, mode: Mode = "sandbox") => {
      market.first = givesAway(bytesOf(10 * UNIT, kept.push(key)));
      expect((await pay(key, who, mode)).body.body).toHaveLength(10 * UNIT);
    };
    const isGone = async (key: string, who = buyer, mode: Mode = "sandbox") =>
      (await pay(key, who, mode)).headers.get("service-body-gone") === "true";
    for (const key of ["1", "2", "3", "4", "5", "6"]) await give(key);
    await give("live", buyer, "live");
    await give("other", other);
    expect(await isGone("1")).toBe(false);
    expect(sums()).toContainEqual([false, 60 * UNIT]);
    await give("7");
    expect([await isGone("1"), await isGone("2"), await isGone("7")]).toEqual([true, false, false]);
    expect([await isGone("live", buyer, "live"), await isGone("other", other)]).toEqual([false, false]);
    expect(sums()).toContainEqual([false, 60 * UNIT]);
    expect(FREE_BYTES_MAX).toBe(64 * MIB);
  });

  test("counts 4 kB at least, and one answer makes room over several commits", async () => {
    const SMALL = 120;
    for (let count = 0; count < SMALL; count++) {
      market.first = givesAway(`small ${count}`);
      await pay(`small ${count}`);
    }
    expect(sums()).toEqual([[false, SMALL * 4_096]]);
    for (let count = 0; count < 6; count++) {
      market.first = givesAway(bytesOf(10 * UNIT, count));
      await pay(`large ${count}`);
    }
    market.first = givesAway(bytesOf(4 * UNIT - 5 * 4_096));
    expect((await pay("last")).body.body).toHaveLength(4 * UNIT - 5 * 4_096);
    expect(sums()).toEqual([[false, 64 * UNIT]]);
    expect((await pay("small 114")).headers.get("service-body-gone")).toBe("true");
    expect((await pay("small 115")).body.body).toBe("small 115");
  });

  test("and was given up by one purchase stays for another that keeps it", async () => {
    market.first = givesAway("shared");
    await pay("one");
    shop.clock.now += FREE_MS_MAX;
    await pay("two");
    shop.clock.now += 1;
    await forget();
    expect((await pay("one")).body.body).toBe("shared");
    shop.clock.now += FREE_MS_MAX;
    await forget();
    expect(stored(Buffer.from("shared"))).toBeNull();
  });
});

describe("what was bought", () => {
  test("counts its length, after it had reserved the most that it can have", async () => {
    const seen: unknown[] = [];
    market.paid = () => {
      seen.push(sums(), purchases()[0]?.contentBytes);
      return delivers(bytesOf(5_000));
    };
    await pay("one");
    expect(seen).toEqual([[[true, RESERVED_BYTES]], RESERVED_BYTES]);
    expect(sums()).toEqual([[true, 5_000]]);
    expect(RESERVED_BYTES).toBe(10 * MIB);
  });

  test("gives back what it reserved where no answer came", async () => {
    for (const connected of [true, false]) {
      market.paid = () => silence(connected);
      expect((await pay(`connected ${connected}`)).body).toMatchObject({ state: "refunded", body: "" });
    }
    expect(sums()).toEqual([[true, 0]]);
  });

  test("gives it back after a crash too, when recovery ends the purchase", async () => {
    const { tokens } = shop.ctx;
    const cutOff = async (): Promise<never> => {
      throw new Error("cut off before anything is signed");
    };
    Object.assign(shop.ctx, { tokens: { ...tokens, sign: cutOff } });
    const silenced = spyOn(console, "error").mockImplementation(() => {});
    expect((await pay("one")).status).toBe(500);
    silenced.mockRestore();
    expect(sums()).toEqual([[true, RESERVED_BYTES]]);
    Object.assign(shop.ctx, { tokens });
    await recoverPurchases(shop.ctx, noFault);
    expect((await pay("one")).body.state).toBe("refunded");
    expect(sums()).toEqual([[true, 0]]);
  });

  test("is refused where it might not fit, with nothing held, and the key is free", async () => {
    await shop.close();
    await open(RESERVED_BYTES + 5_000);
    market.paid = () => delivers(bytesOf(5_001));
    expect((await pay("one")).status).toBe(200);
    market.first = asksVoucher("100");
    const before = shop.allRows(buyer);
    const refused = await pay("two");
    expect([refused.status, refused.code]).toEqual([403, "content_quota_exceeded"]);
    expect(refused.body.error.message).toContain("HOLDFAST_CONTENT_BYTES");
    expect(market.sent).toHaveLength(1);
    expect(shop.allRows(buyer)).toEqual(before);
    // What costs nothing, the other mode and other organisations have space of their own.
    market.first = givesAway("for nothing");
    expect((await pay("two")).status).toBe(200);
    market.first = asksVoucher("100");
    expect((await pay("live", buyer, "live")).status).toBe(200);
    expect((await pay("other", await shop.organisation())).status).toBe(200);
  });

  test("never goes over the quota, also for purchases at the same time", async () => {
    await shop.close();
    await open(2 * RESERVED_BYTES + 100);
    const gate = Promise.withResolvers<void>();
    market.paid = async () => {
      await gate.promise;
      return delivers(bytesOf(RESERVED_BYTES));
    };
    const running = Array.from({ length: 6 }, (_, count) => pay(`key ${count}`));
    const first = await Promise.race(running);
    expect(first.code).toBe("content_quota_exceeded");
    gate.resolve();
    const codes = (await Promise.all(running)).map(({ status }) => status);
    expect(codes.toSorted()).toEqual([200, 200, 403, 403, 403, 403]);
    expect(sums()).toEqual([[true, 2 * RESERVED_BYTES]]);
  }, 20_000);

  test("frees its space when its key is forgotten", async () => {
    await shop.close();
    await open(RESERVED_BYTES);
    market.paid = () => delivers(bytesOf(1));
    await pay("one");
    expect((await pay("two")).code).toBe("content_quota_exceeded");
    for (const ms of [1, 30 * 86_400_000]) {
      shop.clock.now += ms;
      await countRunningTime(shop.ctx, ms, 30);
    }
    await forget();
    expect(sums()).toEqual([[true, 0]]);
    market.first = asksVoucher("100");
    expect((await pay("two")).status).toBe(200);
  });
});
