import { afterAll, beforeEach, expect, test } from "bun:test";
import { hashSecret } from "../../src/core/api-key.ts";
import { signIn } from "../../src/services/auth/sign-in.ts";
import { callerAt } from "../support/client.ts";
import { TEST_NOW } from "../support/context.ts";
import { createOperator, type SetUp } from "../support/operator.ts";
import { must } from "../support/organisations.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

let made: SetUp;
beforeEach(async () => {
  made = await setUp();
});

const NOW = new Date(TEST_NOW).toISOString();
type Listed = { readonly data: readonly { readonly [field: string]: unknown }[] };

test("list", async () => {
  const { organisation, owner, viewer, emailOf } = made;
  const listed = (await cli.json("users", "list", "--organisation", organisation)) as unknown as Listed;
  expect(listed).toEqual({
    object: "list",
    data: [expect.objectContaining({ id: owner }), expect.objectContaining({ id: viewer })],
  } as never);
  expect(listed.data[1]).toEqual({
    id: viewer,
    object: "user",
    organisation_id: organisation,
    email: emailOf("bob"),
    name: emailOf("bob").replace("@example.com", ""),
    role: "viewer",
    created_at: NOW,
    removed_at: null,
  });
  const list = await printed("users", "list", "--organisation", organisation);
  for (const text of [owner, viewer, emailOf("ada"), emailOf("bob"), "viewer"]) expect(list).toContain(text);
  await refused(["users", "list", "--organisation", "org_none"], "organisation_not_found");
});

test("set-role", async () => {
  const { owner, viewer, emailOf } = made;
  expect(await cli.json("users", "set-role", viewer, "admin")).toMatchObject({ id: viewer, role: "admin" });
  const name = emailOf("bob").replace("@example.com", "");
  expect(await printed("users", "set-role", viewer, "operator")).toContain(`${name} is operator.`);
  expect(ctx.reader.users.get(viewer)?.role).toBe("operator");
  await refused(["users", "set-role", viewer, "god"], "validation_failed", "command-argument value 'god'");
  await refused(["users", "set-role", "usr_none", "admin"], "user_not_found", "There is no person usr_none");
  await refused(["users", "set-role", owner, "admin"], "last_owner", emailOf("ada"));
});

test("remove", async () => {
  const { organisation, owner, viewer } = made;
  await refused(["users", "remove", owner], "last_owner", made.emailOf("ada"));
  expect(await cli.json("users", "remove", viewer)).toMatchObject({ id: viewer, removed_at: NOW });
  await refused(["users", "remove", viewer], "user_not_found");
  await cli.json("users", "set-role", owner, "owner");
  expect(await printed("users", "list", "--organisation", organisation)).not.toContain(viewer);
});

test("remove ends the person's sign-ins and reset links then, so that they are forgotten in time", async () => {
  const { viewer, emailOf } = made;
  const credentials = { email: emailOf("bob"), password: "correct horse" };
  const { token: cookie } = must(await signIn(ctx, credentials, callerAt("192.0.2.1")));
  const { url } = await cli.json("users", "reset-password", viewer);
  const link = String(url).split("#")[1] ?? "";
  const { authSessions, passwordResets } = ctx.reader;
  const ends = () => [
    authSessions.byHash(hashSecret(cookie))?.expiresAt,
    passwordResets.byHash(hashSecret(link))?.expiresAt,
  ];
  const now = ctx.clock.now;
  expect(ends()).toEqual([now + 12 * 3_600_000, now + 3_600_000]);
  await cli.json("users", "remove", viewer);
  expect(ends()).toEqual([now, now]);
});

test("reset-password prints a link once, and keeps only a hash", async () => {
  const { owner, viewer } = made;
  const reset = await cli.json("users", "reset-password", viewer);
  expect(reset).toEqual({
    object: "password_reset",
    user_id: viewer,
    url: expect.stringMatching(/^http:\/\/localhost:8080\/reset-password#[A-Za-z0-9_-]{43}$/),
    expires_at: new Date(TEST_NOW + 3_600_000).toISOString(),
  });
  const token = String(reset.url).split("#")[1] ?? "";
  const hash = new Bun.CryptoHasher("sha256").update(token).digest("hex");
  const { byHash } = ctx.reader.passwordResets;
  expect([byHash(hash)?.userId, byHash(token)]).toEqual([viewer, null]);
  expect(await printed("users", "reset-password", owner)).toMatch(
    /\/reset-password#[\w-]{43}[\s\S]*shown once/,
  );
  await refused(["users", "reset-password", "usr_none"], "user_not_found");
});

test("reset-passkeys", async () => {
  const { viewer } = made;
  expect(await cli.json("users", "reset-passkeys", viewer)).toMatchObject({ id: viewer, object: "user" });
  expect(await printed("users", "reset-passkeys", viewer)).toContain("has no passkeys now.");
  await refused(["users", "reset-passkeys", "usr_none"], "user_not_found");
});

test("sign-ins and sign-out", async () => {
  const { viewer, emailOf } = made;
  const credentials = { email: emailOf("bob"), password: "correct horse" };
  const sign = async (address: string, agent: string) =>
    hashSecret(must(await signIn(ctx, credentials, callerAt(address, agent))).token);
  const [first, second] = [await sign("192.0.2.1", "Firefox"), await sign("2001:db8:1:2:3::4", "curl/8")];
  const ids = [first, second].map((hash) => `sgn_${hash.slice(0, 20)}`);
  const { data } = (await cli.json("users", "sign-ins", viewer)) as unknown as Listed;
  expect(data.map(({ id }) => id).sort()).toEqual([...ids].sort());
  expect(data.find(({ id }) => id === ids[1])).toEqual({
    ...{ id: ids[1], object: "sign_in", user_id: viewer, mode: "live", current: false },
    ...{ address: "2001:db8:1:2::/64", agent: "curl/8", created_at: NOW, last_used_at: NOW },
    expires_at: new Date(TEST_NOW + 12 * 3_600_000).toISOString(),
  });
  const list = await printed("users", "sign-ins", viewer);
  for (const text of [...ids, "192.0.2.1", "Firefox", "2001:db8:1:2::/64", NOW]) expect(list).toContain(text);
  const isOver = (hash: string) => ctx.reader.authSessions.byHash(hash)!.expiresAt <= ctx.now();
  expect(await cli.json("users", "sign-out", viewer, "--sign-in", ids[0]!)).toEqual({
    object: "sign_ins_ended",
    user_id: viewer,
    sign_ins: [ids[0]],
  } as never);
  expect([isOver(first), isOver(second)]).toEqual([true, false]);
  await refused(
    ["users", "sign-out", viewer, "--sign-in", ids[0]!],
    "sign_in_not_found",
    `There is no sign-in ${ids[0]}`,
  );
  expect(await printed("users", "sign-out", viewer)).toMatch(`Sign-ins ended: 1.`);
  expect(isOver(second)).toBeTrue();
  expect(ctx.reader.auditEntries.list(made.organisation, null, 1)[0]).toMatchObject({
    actor: { kind: "machine", id: null },
    action: "user.sign_ins_ended",
    subject: viewer,
    before: { sign_ins: [ids[1]] },
  });
  expect(await printed("users", "sign-out", viewer)).toMatch("Sign-ins ended: 0.");
  for (const command of ["sign-ins", "sign-out"])
    await refused(["users", command, "usr_none"], "user_not_found");
});
