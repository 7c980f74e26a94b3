import { afterAll, beforeEach, expect, test } from "bun:test";
import { TEST_NOW } from "../support/context.ts";
import { createOperator, idOf, type SetUp } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

const NOW = new Date(TEST_NOW).toISOString();

let made: SetUp;
beforeEach(async () => {
  made = await setUp();
});

test("rotate shows the new key with its secret, and when the old one ends", async () => {
  const { agent, key } = made;
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

  const again = await printed("keys", "rotate", idOf(rotated));
  for (const text of [
    `which replaces ${idOf(rotated)}`,
    "hf_test_",
    "shown once",
    new Date(TEST_NOW + 86_400_000).toISOString(),
  ])
    expect(again).toContain(text);
  await refused(["keys", "rotate", key], "api_key_not_active", `The API key ${key} is being replaced`);
});

test("rotate refuses a key that does not exist or has ended, and a wrong overlap", async () => {
  const { key } = made;
  await refused(["keys", "rotate", "key_none"], "api_key_not_found");
  for (const overlap of ["2592001", "a day", "1.5"])
    await refused(["keys", "rotate", key, "--overlap", overlap], "validation_failed", "overlap_seconds: ");
  await cli.json("keys", "revoke", key);
  await refused(["keys", "rotate", key], "api_key_not_active", `The API key ${key} was revoked`);
});

test("list shows the last four digits, the last use and the ends, never a secret", async () => {
  const { agent, key, account } = made;
  const { secret, replaces, ...newer } = await cli.json("keys", "rotate", key, "--overlap", "0");
  const list = await cli.json("keys", "list", "--agent", agent);
  expect(list).toEqual({ object: "list", data: [replaces, newer] });
  const people = await printed("keys", "list", "--agent", agent);
  for (const text of ["last four", "last used", "never", newer.last_four as string, key, NOW])
    expect(people).toContain(text);
  for (const text of [JSON.stringify(list), people]) expect(text).not.toContain(secret as string);
  const idle = idOf(await cli.json("agents", "create", ...account(), "--name", "idle"));
  expect(await printed("keys", "list", "--agent", idle)).toBe("No keys yet.\n");
  await refused(["keys", "list", "--agent", "agt_none"], "agent_not_found");
  await refused(["keys", "list"], "validation_failed", "required option '--agent <id>'");
});
