import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandLineTools, DemoOptions, ServeOptions } from "../../src/cli/tools.ts";
import { refuse } from "../../src/core/errors.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

/** Every command, as its words. */
function leavesOf(command: Command, path: readonly string[] = []): string[][] {
  return command.commands.length === 0
    ? [[...path]]
    : command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]));
}
const LEAVES = leavesOf(buildProgram({ version: "0" } as CommandLineTools));

test("a command that is named is built alone, and as it is among all", () => {
  const tools = { version: "0" } as CommandLineTools;
  const all = buildProgram(tools);
  expect(all.commands.length).toBeGreaterThan(15);
  for (const command of all.commands) {
    const program = buildProgram(tools, command.name());
    expect(program.commands.map((child) => child.name())).toEqual([command.name()]);
    expect(program.commands[0]?.helpInformation()).toBe(command.helpInformation());
  }
  for (const name of ["help", "--help", "no-such-command"])
    expect(buildProgram(tools, name).helpInformation()).toBe(all.helpInformation());
});

describe("the help", () => {
  test("lists what this version has, and nothing that it has not", () => {
    expect(LEAVES.map((leaf) => leaf.join(" ")).sort()).toEqual(
      [
        ...[
          "agents create",
          "agents list",
          "agents set-status",
          "agents show",
          "audit",
          "backup",
          "balances fund",
          "balances show",
          "demo",
          "health",
          "jobs run",
        ],
        ...["keys create", "keys revoke", "openapi", "organisations create", "organisations list"],
        ...["organisations show", "policies create"],
        ...[
          "restore",
          "schemas create",
          "serve",
          "sessions create",
          "sessions revoke",
          "users create",
          "users list",
          "users remove",
          "users reset-passkeys",
          "users reset-password",
          "users set-role",
          "audit-log",
          "keys list",
          "keys rotate",
          "kill-switch",
          "passkey-threshold",
          "verifiers create",
        ],
        ...["x402 list", "x402 resolve", "x402 show"],
        ...["create", "deliveries", "disable", "list", "recover", "redeliver", "send-example"].map(
          (verb) => `webhooks ${verb}`,
        ),
      ].sort(),
    );
  });

  for (const leaf of LEAVES) {
    test(`of ${leaf.join(" ")} says what it does and takes`, async () => {
      const { code, out, err } = await createCommandLine(ctx).run(...leaf, "--help");
      expect([code, err]).toEqual([0, ""]);
      expect(out).toStartWith(`Usage: holdfast ${leaf.join(" ")}`);
      expect(out).toContain("--data <folder>");
      expect(out).toContain("--json");
      // Options without a word of explanation would end their line.
      expect(out).not.toMatch(/^ {2}--\S+( <\S+>)?$/m);
    });
  }

  for (const line of [[], ["--help"], ["help"], ["-h"]]) {
    test(`of the whole, asked with [${line}]`, async () => {
      const { code, out, err } = await createCommandLine(ctx).run(...line);
      expect([code, err]).toEqual([0, ""]);
      const headings = [
        "Run it:",
        "Who may act:",
        "What stops them:",
        "What decides:",
        "The money:",
        "Who hears of it:",
        "Keep it safe:",
        "Reference:",
      ];
      for (const heading of headings) expect(out).toContain(`\n${heading}\n`);
      for (const [name] of LEAVES) expect(out).toMatch(new RegExp(`^ {2}${name}( <\\w+>)? +[a-z]`, "m"));
    });
  }

  test("of a group lists its commands", async () => {
    expect((await createCommandLine(ctx).run("keys", "--help")).out).toContain("revoke <key>");
    expect((await createCommandLine(ctx).run("help", "keys")).out).toContain("revoke <key>");
  });

  test("the version", async () => {
    expect(await createCommandLine(ctx).run("--version")).toEqual({ code: 0, out: "1.2.3\n", err: "" });
  });
});

describe("serve", () => {
  const serving = (seen: ServeOptions[], stopped: Promise<void> = Promise.resolve()) =>
    createCommandLine(ctx, {
      serve: async (options) => {
        seen.push(options);
        return { url: "http://127.0.0.1:8080", dataFolder: "./data", stopped };
      },
    });

  test("hands the flags on as they are, and says where it listens", async () => {
    const seen: ServeOptions[] = [];
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

  test("gives no flag that was not given, and one JSON object with --json", async () => {
    const seen: ServeOptions[] = [];
    const { out } = await serving(seen).run("serve", "--json");
    expect(JSON.parse(out)).toEqual({
      object: "server",
      url: "http://127.0.0.1:8080",
      data_folder: "./data",
    });
    expect(seen).toEqual([{}]);
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
    const { code, out, err } = await broken.run("serve", "--port", "x");
    expect([code, out, JSON.parse(err).error.message]).toEqual([1, "", "HOLDFAST_PORT: must be a port"]);
  });
});

test("demo hands its flags on, and a refusal back", async () => {
  const seen: DemoOptions[] = [];
  const cli = createCommandLine(ctx, {
    demo: async (options) => {
      seen.push(options);
      return options.data === "full" ? refuse("validation_failed", "the folder is not empty") : null;
    },
  });
  expect(await cli.run("demo")).toEqual({ code: 0, out: "", err: "" });
  expect((await cli.run("demo", "--exit", "--data", "d")).code).toBe(0);
  const refused = await cli.run("demo", "--data", "full", "--json");
  expect([refused.code, refused.out, JSON.parse(refused.err).error.message]).toEqual([
    ...[1, "", "the folder is not empty"],
  ]);
  expect(seen).toEqual([
    { exit: false, json: false },
    { exit: true, json: false, data: "d" },
    { exit: false, json: true, data: "full" },
  ]);
});

describe("jobs run", () => {
  const seen: unknown[] = [];
  const cli = createCommandLine(ctx, {
    runJob: async (options) => {
      seen.push(options);
      return { object: "job", job: options.job, done: options.job === "agents" ? null : 3 };
    },
  });

  test("runs the job that is named, and tells what it did", async () => {
    expect(await cli.json("jobs", "run", "deadlines")).toEqual({ object: "job", job: "deadlines", done: 3 });
    expect((await cli.run("jobs", "run", "retention", "--data", "d")).out).toBe(
      "The job retention ran. 3 done.\n",
    );
    expect((await cli.run("jobs", "run", "agents")).out).toBe("The job agents ran.\n");
    expect(seen.splice(0)).toEqual([
      { job: "deadlines" },
      { job: "retention", data: "d" },
      { job: "agents" },
    ]);
  });

  test("refuses one that there is not, and runs nothing", async () => {
    const { code, err } = await cli.run("jobs", "run", "everything");
    expect([code, JSON.parse(err).error.code, seen]).toEqual([1, "validation_failed", []]);
    expect(JSON.parse(err).error.message).toContain("deadlines, agents, recover, retention");
  });
});

describe("health", () => {
  const asking = (host: string, port: number) =>
    createCommandLine(ctx, { serverAddress: () => ({ host, port }) }).run("health");

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
      const unready = await cli.run("health", "--ready");
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
