import { afterEach, beforeEach, expect, test } from "bun:test";
import { createShell, type Shell } from "../../src/http/shell.ts";
import { ALONE } from "../../src/store/instances.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

/** An instance that the others take for dead answers what can be read, and refuses what would write. */

const URL = "http://localhost:8080";

let ctx: TestContext;
let shell: Shell;
let isLost: boolean;
beforeEach(() => {
  isLost = true;
  ctx = createTestContext({ instances: { ...ALONE, isLost: () => isLost } });
  shell = createShell(ctx, {
    ...{ docsUrl: `${URL}/docs`, rateLimits: { read: 1_000, write: 1_000, bench: 1_000 } },
    trustedProxies: [],
    onFault: (error) => console.error(error),
  });
});
afterEach(() => ctx.close());

const ask = (method: string, path: string) =>
  shell(
    new Request(URL + path, { method, headers: { "Content-Type": "application/json" } }),
    () => "192.0.2.1",
  );

test("what writes is 503 with a time to retry, and what reads is answered", async () => {
  const refused = await ask("POST", "/bench/run");
  const { error } = (await refused.json()) as { error: { type: string; code: string; message: string } };
  expect([refused.status, refused.headers.get("retry-after"), error.type, error.code]).toEqual([
    ...[503, "1", "unavailable", "instance_lost"],
  ]);
  expect(error.message).toContain("Nothing was done");
  expect((await ask("GET", "/healthz")).status).toBe(200);
  isLost = false;
  expect((await ask("POST", "/bench/run")).status).not.toBe(503);
});
