import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { databaseSettings } from "../support/database-settings.ts";
import { ENGINE } from "../support/engine.ts";
import { removeLedgerFolder } from "../support/new-ledger.ts";

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const PROCESS_TIMEOUT_MS = 60_000;
/** A ledger in a database is named by the environment. */
const DATA = ENGINE === "embedded" ? ["--data", "ledger"] : [];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-cli-"));
});
afterAll(() => removeLedgerFolder(folder));

/** The program as a process of its own, with a folder of its own and nothing in its environment but the database. */
async function holdfast(args: readonly string[], stdin = "") {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd: folder,
    env: databaseSettings(folder),
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
    timeout: PROCESS_TIMEOUT_MS,
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

test(
  "an operator sets an organisation up, the password from the standard input",
  async () => {
    const owner = ["--owner-email", "ada@example.com", "--owner-password-file", "-"];
    const created = await holdfast(
      ["organisations", "create", "--name", "Acme", ...owner, ...DATA, "--json"],
      "correct horse\n",
    );
    expect([created.code, created.err]).toEqual([0, ""]);
    const { organisation } = JSON.parse(created.out);

    const account = ["--organisation", organisation.id, "--mode", "sandbox", ...DATA, "--json"];
    const processes = await Promise.all([
      ...["one", "two", "three"].map((name) => holdfast(["agents", "create", ...account, "--name", name])),
      ...["1", "20", "300"].map((amount) => holdfast(["balances", "fund", ...account, "--amount", amount])),
    ]);
    expect(processes.map(({ code, err }) => [code, err])).toEqual(processes.map(() => [0, ""]));

    const shown = await holdfast(["balances", "show", ...account]);
    expect(JSON.parse(shown.out).balances).toEqual([
      { asset: "USDC", available: "321", held: "0", paid: "0" },
    ]);
    expect(await holdfast(["audit", ...DATA, "--json"])).toEqual({
      code: 0,
      out: '{"object":"audit","ok":true,"problems":[]}\n',
      err: "",
    });
    // Nine processes one after the other, on a machine that may be busy.
  },
  PROCESS_TIMEOUT_MS,
);

test("a failure exits 1: a sentence on stderr, or with --json the error's body; nothing on stdout", async () => {
  const line = ["keys", "create", "--agent", "agt_none", ...DATA];
  expect(await holdfast(line)).toEqual({
    code: 1,
    out: "",
    err: "holdfast: There is no agent agt_none. See holdfast agents list\n",
  });
  const { code, out, err } = await holdfast([...line, "--json"]);
  expect([code, out]).toEqual([1, ""]);
  expect(JSON.parse(err).error).toEqual({
    type: "not_found",
    code: "agent_not_found",
    message: "There is no agent agt_none.",
    doc_url: expect.stringContaining("/api-reference/errors#agent_not_found"),
    request_id: expect.stringMatching(/^req_/),
  });
});
