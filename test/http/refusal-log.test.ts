import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createShell } from "../../src/http/shell.ts";
import { createRefusalLog } from "../../src/platform/refusal-log.ts";
import type { Json } from "../support/client.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Refusals that may be attempts to get past a check are in the log (docs/operating, "Refusals in the log"). */

let service: ShellService;
let home: TestOrganisation;
let lines: Json[];
let send: (path: string, init?: RequestInit, address?: string) => Promise<number>;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
  lines = [];
  const onAnswered = createRefusalLog(
    (message, fields) => lines.push({ message, ...fields }),
    () => service.clock.now,
  );
  const shell = createShell(service.ctx, {
    docsUrl: "http://localhost/docs",
    rateLimits: { read: 20, write: 100, bench: 100 },
    trustedProxies: [],
    onFault: (fault) => console.error(fault),
    onAnswered,
  });
  send = async (path, init = {}, address = "192.0.2.1") => {
    const headers = { "user-agent": "agent/1", ...init.headers };
    const request = new Request(`http://localhost${path}`, { ...init, headers });
    return (await shell(request, () => address)).status;
  };
});
afterEach(() => service.close());

describe("a refusal is a line", () => {
  test("of nobody: with the address and the program", async () => {
    expect(await send("/v1/warrants", { headers: { authorization: "Bearer hf_live_wrong" } })).toBe(401);
    expect(lines).toMatchObject([
      {
        ...{ message: "refused", address: "192.0.2.1", code: "not_authenticated", status: 401 },
        ...{ method: "GET", route: "/v1/warrants", caller: null, caller_id: null, agent: "agent/1" },
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain("hf_live_wrong");
  });

  test("of a key that may not: with its id", async () => {
    const { as } = home.sandbox;
    expect(await send("/v1/console/escalations", { headers: as as Record<string, string> })).toBe(403);
    expect(lines).toMatchObject([
      { code: "user_session_required", caller: "key", caller_id: expect.stringMatching(/^key_/) },
    ]);
  });

  test("of what cannot be", async () => {
    const body = JSON.stringify({ nonsense: 1 });
    const headers = { ...home.sandbox.as, "content-type": "application/json" } as Record<string, string>;
    expect(await send("/bench/run", { method: "POST", headers, body })).toBe(400);
    expect(lines.map(({ code }) => code)).toEqual(["validation_failed"]);
  });

  test("of who asks too often, ten in a minute of one address; the others are counted", async () => {
    for (let request = 0; request < 40; request++) await send("/v1/warrants");
    expect(new Set(lines.map(({ status }) => status))).toEqual(new Set([401]));
    expect(lines.length).toBe(10);
    await send("/v1/warrants", {}, "192.0.2.2");
    expect(lines.at(-1)).toMatchObject({ address: "192.0.2.2", unlogged: 30 });
    service.clock.now += 60_000;
    await send("/v1/warrants");
    expect(lines.length).toBe(12);
  });
});

test("what is answered, and what is not there, is none", async () => {
  expect(await send("/healthz")).toBe(200);
  expect(await send("/nothing")).toBe(404);
  expect(lines).toEqual([]);
});

test("a failed sign-in has a line of its own, and none here", async () => {
  const body = JSON.stringify({ email: "nobody@example.com", password: "wrong" });
  const headers = { "content-type": "application/json" };
  expect(await send("/auth/session", { method: "POST", headers, body })).toBe(401);
  expect(lines).toEqual([]);
});
