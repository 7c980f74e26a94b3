import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ServeFlags } from "../../src/cli/tools.ts";
import { refuse } from "../../src/core/errors.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

describe("serve", () => {
  const serving = (
    seen: ServeFlags[],
    stopped: Promise<void> = Promise.resolve(),
    setUpUrl: string | null = null,
  ) =>
    createCommandLine(ctx, {
      serve: async (options) => {
        seen.push(options);
        return { url: "http://127.0.0.1:8080", dataFolder: "./data", database: null, setUpUrl, stopped };
      },
    });

  test("hands the flags on as they are, and says where it listens", async () => {
    const seen: ServeFlags[] = [];
    const { code, out, err } = await serving(seen).run(
      ...["serve", "--host", "::1", "--port", "0", "--data", "d", "--base-url", "https://x"],
      ...["--docs-url", "y", "--allow-networks", "10.0.0.0/8", "--fetch-seconds", "3", "--trust-proxy", "z"],
      ...["--log", "requests"],
    );
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("http://127.0.0.1:8080");
    expect(seen).toEqual([
      {
        ...{ host: "::1", port: "0", data: "d", baseUrl: "https://x", docsUrl: "y" },
        ...{ allowNetworks: "10.0.0.0/8", fetchSeconds: "3", trustProxy: "z" },
        log: "requests",
      },
    ]);
  });

  test("passes on only the flags that were given, and prints one JSON object with --json", async () => {
    const seen: ServeFlags[] = [];
    const { out } = await serving(seen).run("serve", "--json");
    expect(JSON.parse(out)).toEqual({
      object: "server",
      url: "http://127.0.0.1:8080",
      data_folder: "./data",
      set_up_url: null,
    });
    expect(seen).toEqual([{}]);
  });

  test("prints the link to set up where there is one, on a line of its own", async () => {
    const link = "http://localhost:8080/console/set-up#code";
    const { out } = await serving([], Promise.resolve(), link).run("serve");
    expect(out.split("\n").map((line) => line.trim())).toContain(link);
    expect(out).toContain("within 30 minutes");
    expect((await serving([]).run("serve")).out).not.toContain("organisation");
    const asJson = await serving([], Promise.resolve(), link).run("serve", "--json");
    expect(JSON.parse(asJson.out).set_up_url).toBe(link);
  });

  test("ends when the server has stopped, not before", async () => {
    const stop = Promise.withResolvers<void>();
    let ended = false;
    const running = serving([], stop.promise)
      .run("serve")
      .finally(() => {
        ended = true;
      });
    await new Promise(setImmediate);
    expect(ended).toBeFalse();
    stop.resolve();
    expect((await running).code).toBe(0);
  });

  test("a bad setting stops it with a message that names it", async () => {
    const broken = createCommandLine(ctx, {
      serve: async () => refuse("validation_failed", "HOLDFAST_PORT: must be a port"),
    });
    const { code, out, err } = await broken.run("serve", "--port", "x", "--json");
    expect([code, out, JSON.parse(err).error.message]).toEqual([1, "", "HOLDFAST_PORT: must be a port"]);
  });
});
