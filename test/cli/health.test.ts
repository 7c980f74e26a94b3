import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { refuse } from "../../src/core/errors.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

describe("health", () => {
  const asking = (host: string, port: number) =>
    createCommandLine(ctx, { serverAddress: () => ({ host, port }) }).run("health", "--json");

  test("asks /healthz at the loopback address, and exits by the answer", async () => {
    const asked: string[] = [];
    let status = 200;
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        asked.push(new URL(request.url).pathname);
        return new Response(null, { status });
      },
    });
    const port = server.port ?? 0;
    try {
      expect(await asking("0.0.0.0", port)).toMatchObject({ code: 0, err: "" });
      status = 503;
      const sick = await asking("127.0.0.1", port);
      expect([sick.code, sick.out]).toEqual([1, ""]);
      expect(JSON.parse(sick.err).error.message).toEndWith("/healthz answers 503.");
      expect(asked).toEqual(["/healthz", "/healthz"]);
    } finally {
      await server.stop(true);
    }
    const gone = await asking("127.0.0.1", port);
    expect([gone.code, JSON.parse(gone.err).error.message]).toEqual([
      1,
      `http://127.0.0.1:${port}/healthz does not answer.`,
    ]);
  });

  test("--ready asks /readyz, and says which check fails", async () => {
    const checks = [
      { name: "ledger", ok: true, message: null },
      { name: "disk", ok: false, message: "The disk has less than 100 MiB left." },
    ];
    let ready = true;
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) =>
        url.endsWith("/readyz")
          ? Response.json({ object: "readiness", ready, checks }, { status: ready ? 200 : 503 })
          : new Response(null, { status: 404 }),
    });
    const port = server.port ?? 0;
    const cli = createCommandLine(ctx, { serverAddress: () => ({ host: "127.0.0.1", port }) });
    try {
      const url = `http://127.0.0.1:${port}/readyz`;
      expect(await cli.json("health", "--ready")).toEqual({ object: "health", ok: true, url });
      ready = false;
      const unready = await cli.run("health", "--ready", "--json");
      expect([unready.code, unready.out, JSON.parse(unready.err).error.message]).toEqual([
        ...[1, "", `${url} answers 503; disk: The disk has less than 100 MiB left.`],
      ]);
    } finally {
      await server.stop(true);
    }
  });

  test("hands its flags on, and refuses a bad address", async () => {
    const seen: unknown[] = [];
    const cli = createCommandLine(ctx, {
      serverAddress: (options) => {
        seen.push(options);
        return refuse("validation_failed", "HOLDFAST_PORT: must be a port");
      },
    });
    expect((await cli.run("health", "--host", "h", "--port", "p")).code).toBe(1);
    expect(seen).toEqual([{ host: "h", port: "p" }]);
  });
});
