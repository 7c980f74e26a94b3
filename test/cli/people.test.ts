import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";
import { rowCounts } from "../support/rows.ts";

/** People and the audit log as an operator works with them, with --json and as people read them. */

let ctx: TestContext;
let cli: CommandLine;
let organisation: string;
let owner: string;
let user: string;
beforeAll(() => {
  ctx = createTestContext();
  cli = createCommandLine(ctx);
});
afterAll(() => ctx.close());

const NOW = new Date(TEST_NOW).toISOString();
type Id = { readonly id: string };
type Listed = { readonly data: readonly { readonly [field: string]: unknown }[] };

let sequence = 0;
const email = (name: string) => `${name}${sequence}@example.com`;
beforeEach(async () => {
  sequence += 1;
  const flags = ["--owner-email", email("ada"), "--owner-password", "correct horse"];
  const created = await cli.json("organisations", "create", "--name", "Acme", ...flags);
  organisation = (created.organisation as Id).id;
  owner = (created.owner as Id).id;
  const person = ["--email", email("bob"), "--password", "correct horse", "--role", "viewer"];
  user = String((await cli.json("users", "create", "--organisation", organisation, ...person)).id);
});

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

describe("users", () => {
  test("list", async () => {
    const listed = (await cli.json("users", "list", "--organisation", organisation)) as unknown as Listed;
    expect(listed).toEqual({
      object: "list",
      data: [expect.objectContaining({ id: owner }), expect.objectContaining({ id: user })],
    } as never);
    expect(listed.data[1]).toEqual({
      id: user,
      object: "user",
      organisation_id: organisation,
      email: email("bob"),
      name: `bob${sequence}`,
      role: "viewer",
      created_at: NOW,
      removed_at: null,
    });
    const told = await tells("users", "list", "--organisation", organisation);
    for (const text of [owner, user, email("ada"), email("bob"), "viewer"]) expect(told).toContain(text);
    await refuses(["users", "list", "--organisation", "org_none"], "organisation_not_found");
  });

  test("set-role", async () => {
    expect(await cli.json("users", "set-role", user, "admin")).toMatchObject({ id: user, role: "admin" });
    expect(await tells("users", "set-role", user, "operator")).toContain(`bob${sequence} is operator.`);
    expect(ctx.reader.users.get(user)?.role).toBe("operator");
    await refuses(["users", "set-role", user, "god"], "validation_failed", "command-argument value 'god'");
    await refuses(
      ["users", "set-role", "usr_none", "admin"],
      "user_not_found",
      "There is no person usr_none",
    );
    await refuses(["users", "set-role", owner, "admin"], "last_owner", email("ada"));
  });

  test("remove", async () => {
    await refuses(["users", "remove", owner], "last_owner", email("ada"));
    expect(await cli.json("users", "remove", user)).toMatchObject({ id: user, removed_at: NOW });
    await refuses(["users", "remove", user], "user_not_found");
    await cli.json("users", "set-role", owner, "owner");
    expect(await tells("users", "list", "--organisation", organisation)).not.toContain(user);
  });

  test("reset-password prints a link once, and keeps only a hash", async () => {
    const made = await cli.json("users", "reset-password", user);
    expect(made).toEqual({
      object: "password_reset",
      user_id: user,
      url: expect.stringMatching(/^http:\/\/localhost:8080\/reset-password#[A-Za-z0-9_-]{43}$/),
      expires_at: new Date(TEST_NOW + 3_600_000).toISOString(),
    });
    const token = String(made.url).split("#")[1] ?? "";
    const hash = new Bun.CryptoHasher("sha256").update(token).digest("hex");
    const { byHash } = ctx.reader.passwordResets;
    expect([byHash(hash)?.userId, byHash(token)]).toEqual([user, null]);
    expect(await tells("users", "reset-password", owner)).toMatch(
      /\/reset-password#[\w-]{43}[\s\S]*shown once/,
    );
    await refuses(["users", "reset-password", "usr_none"], "user_not_found");
  });

  test("reset-passkeys", async () => {
    expect(await cli.json("users", "reset-passkeys", user)).toMatchObject({ id: user, object: "user" });
    expect(await tells("users", "reset-passkeys", user)).toContain("has no passkeys now.");
    await refuses(["users", "reset-passkeys", "usr_none"], "user_not_found");
  });
});

describe("audit-log", () => {
  const log = (...flags: readonly string[]) => ["audit-log", "--organisation", organisation, ...flags];

  test("newest first, page by page", async () => {
    await cli.json("users", "set-role", user, "admin");
    const all = (await cli.json(...log())) as unknown as Listed;
    expect(all.data.map(({ action, subject, actor }) => [action, subject, actor])).toEqual([
      ["user.role_changed", user, { kind: "machine", id: null }],
      ["user.created", user, { kind: "machine", id: null }],
      ["user.created", owner, { kind: "machine", id: null }],
      ["organisation.created", organisation, { kind: "machine", id: null }],
    ]);
    expect(all.data[0]).toMatchObject({ before: { role: "viewer" }, after: { role: "admin" } });
    const first = await cli.json(...log("--limit", "3"));
    expect(first).toEqual({
      object: "list",
      data: all.data.slice(0, 3),
      has_more: true,
      next_cursor: all.data[2]?.id,
    });
    const rest = await cli.json(...log("--starting-after", String(first.next_cursor)));
    expect(rest).toEqual({ object: "list", data: all.data.slice(3), has_more: false, next_cursor: null });

    const told = await tells(...log("--limit", "1"));
    for (const text of [NOW, "the machine", "user.role_changed", user, `--starting-after ${all.data[0]?.id}`])
      expect(told).toContain(text);
    expect(told).not.toContain("organisation.created");
    expect(await tells(...log())).not.toContain("--starting-after");
  });

  test("refused", async () => {
    await refuses(["audit-log", "--organisation", "org_none"], "organisation_not_found");
    for (const limit of ["0", "101", "many"])
      await refuses(log("--limit", limit), "validation_failed", "limit: must be an integer from 1 to 100");
    await refuses(log("--starting-after", "act_none"), "validation_failed", "starting_after: ");
    await refuses(["audit-log"], "validation_failed", "required option '--organisation <id>'");
  });
});
