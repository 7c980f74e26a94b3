import { expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import { warnOfPlainHttp } from "../../src/app/plain-http.ts";
import { baseUrlOf } from "../../src/app/urls.ts";
import { startServer } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { newLedgerFolder } from "../support/new-ledger.ts";
import { must } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";

/** The warnings of plain http among the lines that are logged meanwhile. */
async function warningsOf(run: () => unknown): Promise<readonly Record<string, string>[]> {
  const lines: string[] = [];
  const write = spyOn(process.stderr, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  try {
    await run();
  } finally {
    write.mockRestore();
  }
  return lines.map((line) => JSON.parse(line)).filter(({ message }) => message.startsWith("plain http"));
}

test.each([
  ["127.0.0.1", undefined, false],
  ["127.8.9.1", undefined, false],
  ["::1", undefined, false],
  ["localhost", undefined, false],
  ["127.0.0.1", "http://holdfast.localhost:8080", false],
  ["127.0.0.1", "http://[::1]:8080", false],
  // With https there is a proxy in front, which may be on another machine.
  ["127.0.0.1", "https://holdfast.example", false],
  ["0.0.0.0", "HTTPS://holdfast.example", false],
  ["0.0.0.0", undefined, true],
  ["::", undefined, true],
  ["192.168.1.7", "http://localhost:8080", true],
  ["holdfast.internal", undefined, true],
  ["127.0.0.1", "http://holdfast.example", true],
  ["127.0.0.1", "http://localhost.example", true],
])("listening at %p with the base URL %p is warned of: %p", async (HOST, BASE_URL, isWarnedOf) => {
  const config = must(readConfig({ HOST, BASE_URL }, {}));
  const warnings = await warningsOf(() => warnOfPlainHttp(config, baseUrlOf(config)));
  expect(warnings.length).toBe(isWarnedOf ? 1 : 0);
  for (const { level, message, host } of warnings) {
    expect([level, host]).toEqual(["warning", HOST]);
    for (const what of ["TLS", "HOLDFAST_BASE_URL", "HOLDFAST_TRUST_PROXY"]) expect(message).toContain(what);
  }
});

test("a server says so once, when it starts", async () => {
  const folder = newLedgerFolder();
  const config = must(readConfig({ ...testSettings(folder), BASE_URL: "http://holdfast.example" }, {}));
  const warnings = await warningsOf(async () => {
    const { url, stop } = must(await startServer(config));
    for (let count = 0; count < 3; count++) await fetch(`${url}/healthz`);
    await stop();
  });
  rmSync(folder, { recursive: true, force: true });
  expect(warnings.map(({ base_url }) => base_url)).toEqual(["http://holdfast.example"]);
});
