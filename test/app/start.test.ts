import { expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openForCommands } from "../../src/app/ledger.ts";
import { startServer } from "../../src/app.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import { createCommandLine } from "../support/command-line.ts";
import { must } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";
import { until } from "../support/until.ts";

const TOKEN = "the-token-of-a-prometheus";

test("a server is ready before it starts its children, and starts them then", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  const spawn = spyOn(Bun, "spawn");
  const config = must(readConfig(testSettings(folder), {}));
  const { url, stop } = must(await startServer(config, { ...NO_SECRETS, metricsToken: TOKEN }));
  try {
    expect(spawn).not.toHaveBeenCalled();
    const evaluators = async () => {
      const response = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
      const lines = (await response.text()).split("\n");
      return lines.filter((line) => line.startsWith("holdfast_evaluator_children{"));
    };
    const wanted = ['{pool="verify"} 2', '{pool="bench"} 1'].map(
      (series) => `holdfast_evaluator_children${series}`,
    );
    await until("the children run", async () => Bun.deepEquals(await evaluators(), wanted));
  } finally {
    spawn.mockRestore();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a link that a command writes leads to the server that ran on its folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  try {
    const settings = { ...testSettings(folder), BASE_URL: "https://pay.example" };
    const { stop } = must(await startServer(must(readConfig(settings, {}))));
    await stop();
    const { ctx, close } = await openForCommands(must(readConfig({ DATA: folder }, {})));
    try {
      const cli = createCommandLine(ctx);
      const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
      const made = await cli.json("organisations", "create", "--name", "Acme", ...owner);
      const link = await cli.json("users", "reset-password", (made.owner as { id: string }).id);
      expect(link.url).toStartWith("https://pay.example/reset-password#");
    } finally {
      await close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
