import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../src/config.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { type DemoSettings, runDemo } from "../../src/demo/demo.ts";
import { SCENES } from "../../src/demo/scenes.ts";
import { must } from "../support/stage.ts";

const root = mkdtempSync(join(tmpdir(), "holdfast-demo-test-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Runs the demo on a free port; its lines, and what it returned. */
async function run(settings: Partial<DemoSettings> = {}) {
  const lines: string[] = [];
  const refused = await runDemo({
    config: must(readConfig({ PORT: "0" }, {})),
    data: join(root, "data"),
    keepServing: false,
    colour: false,
    print: (text) => void lines.push(...text.split("\n")),
    untilStopped: () => Promise.reject(new Error("nobody asked for serving")),
    ...settings,
  });
  return { refused, lines, text: lines.join("\n") };
}

describe("the tour", () => {
  let told: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    told = await run();
  });

  test("ends well, and says that it is a sandbox and where the data is", () => {
    expect(told.refused).toBeNull();
    expect(told.lines[0]).toContain("SANDBOX");
    expect(told.text).toContain(join(root, "data"));
  });

  test("tells every state, clause, reason and amount", () => {
    for (const { state, codes } of SCENES) {
      expect(told.text).toContain(`${state.toUpperCase()}: `);
      for (const code of codes) if (code !== null) expect(told.text).toContain(code);
    }
    for (const said of [
      "✓ http.status",
      "✗ http.status",
      "saw 500",
      'band "usable"',
      "user_session_required",
    ])
      expect(told.text).toContain(said);
    expect(told.text).toMatch(/before +100\.00 USDC +0\.00 USDC +0\.00 USDC/);
    expect(told.text).toMatch(/the owner decides +79\.00 USDC +0\.00 USDC +21\.00 USDC/);
    expect(told.text.match(/\/t\/wrt_/g)).toHaveLength(SCENES.length);
  });

  test("has no colour where none was asked for, and fits a terminal", () => {
    expect(told.text).not.toContain("\u001b");
    expect(told.lines.filter((line) => line.length > 100)).toEqual([]);
  });

  test("works again: in its own folder, where its port is taken, and in colour", async () => {
    const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    try {
      const config = must(readConfig({ PORT: String(other.port) }, {}));
      const { refused, text } = await run({ config, colour: true });
      expect(refused).toBeNull();
      for (const said of ["ada+2@", `since port ${other.port} is taken`, "\u001b["])
        expect(text).toContain(said);
    } finally {
      await other.stop(true);
    }
  });

  test("keeps out of a folder that is not its own", async () => {
    const folder = mkdtempSync(join(root, "real-"));
    writeFileSync(join(folder, "holdfast.db"), "");
    const { refused, text } = await run({ data: folder });
    expect(isRefusal(refused) && refused.refused).toBe("validation_failed");
    expect(text).toBe("");
    expect(readdirSync(folder)).toEqual(["holdfast.db"]);
  });
});

test.skipIf(!Bun.which("curl"))("the lines to copy work as they stand, in order", async () => {
  const answers: Record<string, unknown>[] = [];
  const lines: string[] = [];
  const { refused } = await run({
    keepServing: true,
    print: (text) => void lines.push(...text.split("\n")),
    async untilStopped() {
      for (const line of lines.filter((candidate) => candidate.startsWith("curl "))) {
        const shell = Bun.spawn(["sh", "-c", line], { stdout: "pipe", stderr: "inherit" });
        answers.push(JSON.parse(await shell.stdout.text()));
      }
    },
  });
  expect(refused).toBeNull();
  expect(answers.map((answer) => answer.state ?? answer.object ?? answer.reason_codes)).toEqual([
    ...["held", "held", "escalated", "auth_session", "released", "list", "receipt", "list"],
    ["value_mismatch"],
  ]);
});
