import { afterAll, beforeEach, expect, test } from "bun:test";
import { TEST_NOW } from "../support/context.ts";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, printed, refused } = createOperator();
afterAll(() => ctx.close());

const NOW = new Date(TEST_NOW).toISOString();
type Id = { readonly id: string };
type Listed = { readonly data: readonly { readonly [field: string]: unknown }[] };

let organisation: string;
let owner: string;
let viewer: string;
let sequence = 0;
beforeEach(async () => {
  sequence += 1;
  const owned = ["--owner-email", `ada${sequence}@example.com`, "--owner-password", "correct horse"];
  const created = await cli.json("organisations", "create", "--name", "Acme", ...owned);
  organisation = (created.organisation as Id).id;
  owner = (created.owner as Id).id;
  const person = ["--email", `bob${sequence}@example.com`, "--password", "correct horse", "--role", "viewer"];
  viewer = String((await cli.json("users", "create", "--organisation", organisation, ...person)).id);
});

const log = (...flags: readonly string[]) => ["audit-log", "--organisation", organisation, ...flags];

test("newest first, page by page", async () => {
  await cli.json("users", "set-role", viewer, "admin");
  const all = (await cli.json(...log())) as unknown as Listed;
  expect(all.data.map(({ action, subject, actor }) => [action, subject, actor])).toEqual([
    ["user.role_changed", viewer, { kind: "machine", id: null }],
    ["user.created", viewer, { kind: "machine", id: null }],
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

  const page = await printed(...log("--limit", "1"));
  for (const text of [NOW, "the machine", "user.role_changed", viewer, `--starting-after ${all.data[0]?.id}`])
    expect(page).toContain(text);
  expect(page).not.toContain("organisation.created");
  expect(await printed(...log())).not.toContain("--starting-after");
});

test("refused", async () => {
  await refused(["audit-log", "--organisation", "org_none"], "organisation_not_found");
  for (const limit of ["0", "101", "many"])
    await refused(log("--limit", limit), "validation_failed", "limit: must be an integer from 1 to 100");
  await refused(log("--starting-after", "act_none"), "validation_failed", "starting_after: ");
  await refused(["audit-log"], "validation_failed", "required option '--organisation <id>'");
});
