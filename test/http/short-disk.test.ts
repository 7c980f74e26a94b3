import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { type Market, openMarket, SELLER_URL } from "../support/market.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Where the disk is short, the sandbox is refused before live is (docs/operating, "A full disk"). */

const MIB = 1024 * 1024;

let market: Market;
let service: ShellService;
beforeEach(() => {
  market = openMarket();
  service = startTestShell({ x402: market.x402 });
});
afterEach(() => service.close());

test("the sandbox opens nothing new, and everything else goes on", async () => {
  const home = await service.organisation();
  const open = (mode: "live" | "sandbox", key: string) =>
    service.post("/v1/warrants", service.body(), { as: home[mode].as, key });
  const first = await open("sandbox", "first");
  const hasSpace = service.ctx.store.hasSpace;
  Object.assign(service.ctx.store, { hasSpace: (mode: string) => mode === "live" });
  const before = service.allRows(home);
  const refused = await open("sandbox", "second");
  expect([refused.status, refused.code]).toEqual([500, "internal_error"]);
  expect(refused.body.error.message).toContain("disk is nearly full");
  expect(service.allRows(home)).toEqual(before);
  expect((await open("sandbox", "first")).text).toBe(first.text);
  expect((await service.get("/v1/warrants?limit=1&sort=created", { as: home.sandbox.as })).status).toBe(200);
  expect((await open("live", "live")).status).toBe(201);
  Object.assign(service.ctx.store, { hasSpace });
  expect((await open("sandbox", "second")).status).toBe(201);
});

test("nor does the sandbox verify or buy; live does, and so does the sandbox when there is space again", async () => {
  const home = await service.organisation();
  const opened = {
    live: await service.opened(home),
    sandbox: await service.opened(home, {}, { as: home.sandbox.as }),
  };
  const verify = (mode: "live" | "sandbox") => {
    const body = { source_url: "https://source.example/" };
    return service.post(`/v1/warrants/${opened[mode].id}/verify`, body, { as: home[mode].as, key: "verify" });
  };
  const buy = (mode: "live" | "sandbox") => {
    const spec = { clauses: [{ kind: "http.status", equals: 200 }] };
    const body = { url: SELLER_URL, max_amount: "100", spec };
    return service.post("/v1/x402/pay", body, { as: home[mode].as, key: "buy" });
  };
  const hasSpace = service.ctx.store.hasSpace;
  Object.assign(service.ctx.store, { hasSpace: (mode: string) => mode === "live" });
  const before = service.allRows(home);
  for (const refused of [await verify("sandbox"), await buy("sandbox")])
    expect([refused.status, refused.code]).toEqual([500, "internal_error"]);
  expect([service.allRows(home), market.asked]).toEqual([before, []]);
  for (const mode of ["live", "sandbox"] as const) {
    if (mode === "sandbox") Object.assign(service.ctx.store, { hasSpace });
    expect([(await verify(mode)).body.state, (await buy(mode)).body.state]).toEqual(["released", "released"]);
  }
});

test("that begins below 200 MiB, and where the system does not say what is free it never does", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-short-disk-"));
  let free: number | null = 200 * MIB;
  const clocks = { now: Date.now, steadyNow: () => performance.now() };
  const options = {
    version: "0.1.0",
    ...clocks,
    newInstanceId: () => "ins_0",
    freeBytes: () => free,
  };
  const store = openSqliteStore(folder, options);
  try {
    const spaces = () => [store.hasSpace("sandbox"), store.hasSpace("live")];
    expect(spaces()).toEqual([true, true]);
    free = 200 * MIB - 1;
    expect(spaces()).toEqual([false, true]);
    const ofCapsules = () => [store.hasSpaceForCapsule("sandbox"), store.hasSpaceForCapsule("live")];
    for (const [mib, has] of [
      [600, [true, true]],
      [599, [false, true]],
      [400, [false, true]],
      [399, [false, false]],
    ] as const) {
      free = mib * MIB;
      expect(ofCapsules()).toEqual([...has]);
    }
    free = null;
    expect(spaces()).toEqual([true, true]);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
});
