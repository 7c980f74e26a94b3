import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";
import { rowCounts } from "../support/rows.ts";

/** Agents, keys and switches as an operator works with them, with --json and as people read them. */

let ctx: TestContext;
let cli: CommandLine;
let organisation: string;
let agent: string;
let key: string;
beforeAll(() => {
  ctx = createTestContext();
  cli = createCommandLine(ctx);
});
afterAll(() => ctx.close());

const NOW = new Date(TEST_NOW).toISOString();
const DID_KEY = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
type Id = { readonly id: string };

let sequence = 0;
beforeEach(async () => {
  sequence += 1;
  const owner = ["--owner-email", `ada${sequence}@example.com`, "--owner-password", "correct horse"];
  const created = await cli.json("organisations", "create", "--name", "Acme", ...owner);
  organisation = (created.organisation as Id).id;
  agent = idOf(await cli.json("agents", "create", ...books(), "--name", "buyer"));
  key = idOf(await cli.json("keys", "create", "--agent", agent));
});

const books = (mode = "sandbox") => ["--organisation", organisation, "--mode", mode];
const idOf = (resource: unknown): string => (resource as Id).id;

/** What people see; it must succeed. */
async function tells(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await cli.run(...args);
  expect([code, err]).toEqual([0, ""]);
  return out;
}

/** A failure: exit code 1, the body on stderr, and no row written. */
async function refuses(args: readonly string[], code: string, start = ""): Promise<void> {
  for (const line of [args, [...args, "--json"]]) {
    const rows = rowCounts(ctx.folder);
    const ran = await cli.run(...line);
    expect([ran.code, ran.out]).toEqual([1, ""]);
    const { error } = JSON.parse(ran.err);
    expect([error.code, error.message.slice(0, start.length)]).toEqual([code, start]);
    expect(rowCounts(ctx.folder)).toEqual(rows);
  }
}

describe("organisations", () => {
  test("are listed and shown with their switches", async () => {
    await cli.json("kill-switch", "on", "--organisation", organisation);
    const shown = await cli.json("organisations", "show", organisation);
    expect([shown.id, shown.kill_switch, shown.passkey_threshold]).toEqual([organisation, true, null]);
    const { data } = await cli.json("organisations", "list");
    expect((data as Id[]).find(({ id }) => id === organisation)).toEqual(shown as Id);
    for (const args of [["list"], ["show", organisation]]) {
      const told = await tells("organisations", ...args);
      for (const text of [organisation, "on", "off"]) expect(told).toContain(text);
    }
    await refuses(["organisations", "show", "org_unknown"], "organisation_not_found");
  });
});

describe("agents", () => {
  test("create with a key of their own", async () => {
    const created = await cli.json("agents", "create", ...books(), "--name", "own", "--did-key", DID_KEY);
    expect(created.identity).toBe(DID_KEY);
    expect(await tells("agents", "show", idOf(created))).toContain(DID_KEY);
    const bad = ["agents", "create", ...books(), "--name", "own", "--did-key", `${DID_KEY}x`];
    await refuses(bad, "validation_failed", "did_key: must be the did:key:z… of");
  });

  test("list and show, in the read-back shape", async () => {
    await cli.json("sessions", "create", "--agent", agent, "--ceiling", "8400000");
    const shown = await cli.json("agents", "show", agent);
    expect(shown).toMatchObject({
      id: agent,
      object: "agent",
      session: { amount_ceiling: "8400000", amount_spent: "0" },
      warrants: { total: 0, by_state: {} },
    });
    expect(await cli.json("agents", "list", ...books())).toEqual({ object: "list", data: [shown] });
    expect(await cli.json("agents", "list", ...books("live"))).toEqual({ object: "list", data: [] });

    const list = await tells("agents", "list", ...books());
    for (const text of ["id ", "failures", agent, "buyer", "active", "0 of 3", "0.00 USDC of 8.40 USDC"])
      expect(list).toContain(text);
    const show = await tells("agents", "show", agent);
    for (const text of ["The agent buyer is active.", "0.00 USDC of 8.40 USDC", "did:web:"])
      expect(show).toContain(text);
    expect(await tells("agents", "list", ...books("live"))).toBe("No agents yet, live.\n");
  });

  test("are refused where they are not there", async () => {
    await refuses(["agents", "show", "agt_none"], "agent_not_found", "There is no agent agt_none");
    await refuses(
      ["agents", "list", "--organisation", "org_none", "--mode", "live"],
      "organisation_not_found",
    );
    await refuses(["agents", "list", "--organisation", organisation], "validation_failed", "required option");
  });
});

describe("keys", () => {
  test("rotate: the new key with its secret, the old one with its end", async () => {
    const rotated = await cli.json("keys", "rotate", key, "--overlap", "3600");
    expect(rotated).toMatchObject({
      object: "api_key",
      agent_id: agent,
      mode: "sandbox",
      secret: expect.stringMatching(/^hf_test_[0-9A-Za-z]{36}$/),
      created_at: NOW,
      expires_at: null,
      replaces: { id: key, expires_at: new Date(TEST_NOW + 3_600_000).toISOString(), revoked_at: null },
    });
    expect(Object.keys(rotated.replaces as object)).not.toContain("secret");

    const again = await tells("keys", "rotate", idOf(rotated));
    for (const text of [
      `in the place of ${idOf(rotated)}`,
      "hf_test_",
      "shown once",
      new Date(TEST_NOW + 86_400_000).toISOString(),
    ])
      expect(again).toContain(text);
    await refuses(["keys", "rotate", key], "api_key_not_active", `The API key ${key} is being replaced`);
  });

  test("rotate is refused for what it is not", async () => {
    await refuses(["keys", "rotate", "key_none"], "api_key_not_found");
    for (const overlap of ["2592001", "a day", "1.5"])
      await refuses(["keys", "rotate", key, "--overlap", overlap], "validation_failed", "overlap_seconds: ");
    await cli.json("keys", "revoke", key);
    await refuses(["keys", "rotate", key], "api_key_not_active", `The API key ${key} was revoked`);
  });

  test("list: last four, last use and ends, never a secret", async () => {
    const { secret, replaces, ...newer } = await cli.json("keys", "rotate", key, "--overlap", "0");
    const list = await cli.json("keys", "list", "--agent", agent);
    expect(list).toEqual({ object: "list", data: [replaces, newer] });
    const people = await tells("keys", "list", "--agent", agent);
    for (const text of ["last four", "last used", "never", newer.last_four as string, key, NOW])
      expect(people).toContain(text);
    for (const text of [JSON.stringify(list), people]) expect(text).not.toContain(secret as string);
    const idle = idOf(await cli.json("agents", "create", ...books(), "--name", "idle"));
    expect(await tells("keys", "list", "--agent", idle)).toBe("No keys yet.\n");
    await refuses(["keys", "list", "--agent", "agt_none"], "agent_not_found");
    await refuses(["keys", "list"], "validation_failed", "required option '--agent <id>'");
  });
});

describe("switches", () => {
  const of = () => ["--organisation", organisation];

  test("the kill switch is on, and off again", async () => {
    const on = await cli.json("kill-switch", "on", ...of());
    expect(on).toEqual({
      id: organisation,
      object: "organisation",
      name: "Acme",
      kill_switch: true,
      passkey_threshold: null,
      created_at: NOW,
    });
    expect(await tells("kill-switch", "on", ...of())).toContain("Acme opens no new warrants");
    expect(await tells("kill-switch", "off", ...of())).toContain("Acme opens warrants.");
    expect((await cli.json("kill-switch", "off", ...of())).kill_switch).toBeFalse();
  });

  test("the passkey threshold is an amount, or off", async () => {
    const set = await cli.json("passkey-threshold", ...of(), "--amount", "9223372036854775807");
    expect(set.passkey_threshold).toBe("9223372036854775807");
    expect(await tells("passkey-threshold", ...of(), "--amount", "8400000")).toContain("Above 8.40 USDC");
    expect((await cli.json("passkey-threshold", ...of(), "--amount", "0")).passkey_threshold).toBe("0");
    expect(await tells("passkey-threshold", ...of(), "--amount", "off")).toContain("asks for no passkey");
    expect((await cli.json("passkey-threshold", ...of(), "--amount", "off")).passkey_threshold).toBeNull();
  });

  test("are refused where they are none", async () => {
    await refuses(["kill-switch", "maybe", ...of()], "validation_failed", "command-argument value 'maybe'");
    await refuses(["kill-switch", ...of()], "validation_failed", "missing required argument 'state'");
    await refuses(["kill-switch", "on"], "validation_failed", "required option '--organisation <id>'");
    await refuses(["kill-switch", "on", "--organisation", "org_none"], "organisation_not_found");
    for (const amount of ["-1", "1.5", "none", "9223372036854775808"])
      await refuses(["passkey-threshold", ...of(), "--amount", amount], "validation_failed", "amount: ");
    await refuses(["passkey-threshold", ...of()], "validation_failed", "required option '--amount");
  });
});
