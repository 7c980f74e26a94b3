import { afterEach, beforeEach, expect, test } from "bun:test";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../../src/services/admin/password-resets.ts";
import { signIn } from "../../../src/services/auth/sign-in.ts";
import { tellOfLostEvents, tellOfTrouble } from "../../../src/services/notices/trouble.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must, SCRIPTED, type Stage } from "../../support/stage.ts";
import { createTelling } from "../../support/telling.ts";

/** What people hear of their own account, and admins of the service (docs/notices, "Notices"). */

const DAY_MS = 24 * 3_600_000;
const HOME = { address: "192.0.2.1", network: "192.0.2.1", agent: "Firefox/128" };
const PASSWORD = "correct horse battery staple";

let ctx: TestContext;
let stage: Stage;
let telling: ReturnType<typeof createTelling>;
beforeEach(async () => {
  telling = createTelling();
  ctx = createTestContext({ ...SCRIPTED, notices: telling.notices });
  stage = await createStage(ctx);
});
afterEach(() => ctx.close());

const emailOf = (userId: string) => ctx.reader.users.get(userId)?.email ?? "";
async function tell() {
  for (let round = 0; round < 3; round++) await telling.deliver(ctx);
  return telling.sent();
}

test("a reset link is mailed to its person, and is forgotten then", async () => {
  const { url } = must(await issuePasswordReset(ctx, MACHINE, { user_id: stage.operator.userId }));
  const [kept] = ctx.reader.notices.ofUser(stage.operator.userId, 1);
  expect(kept?.encryptedLink).toEqual(expect.any(String));
  expect(JSON.stringify(kept)).not.toContain(url.slice(-20));
  const [mail, ...others] = await tell();
  expect([mail?.to, others]).toEqual([emailOf(stage.operator.userId), []]);
  expect(mail?.text).toContain(`\n${url}\n`);
  expect(ctx.reader.notices.ofUser(stage.operator.userId, 1)).toMatchObject([
    { status: "delivered", encryptedLink: null },
  ]);
});

test("a sign-in from a new place is told to its person, whatever they chose; one from there again is not", async () => {
  const email = emailOf(stage.operator.userId);
  must(await signIn(ctx, { email, password: PASSWORD }, HOME));
  const [mail, ...others] = await tell();
  expect([mail?.to, mail?.subject, others]).toEqual([email, "A sign-in from a new place", []]);
  expect(mail?.text).toContain("from the network 192.0.2.1");
  expect(mail?.text).toContain("Firefox/128");
  must(await signIn(ctx, { email, password: PASSWORD }, HOME));
  expect(await tell()).toEqual([]);
});

test("a wrong password is told to nobody", async () => {
  await signIn(ctx, { email: emailOf(stage.operator.userId), password: "wrong" }, HOME);
  expect(await tell()).toEqual([]);
});

test("without a mail server no link is kept", async () => {
  const none = createTestContext(SCRIPTED);
  try {
    const there = await createStage(none);
    must(await issuePasswordReset(none, MACHINE, { user_id: there.operator.userId }));
    must(
      await signIn(
        none,
        { email: none.reader.users.get(there.operator.userId)!.email, password: PASSWORD },
        HOME,
      ),
    );
    expect(none.reader.notices.ofUser(there.operator.userId, 9)).toEqual([]);
  } finally {
    await none.close();
  }
});

test("an endpoint that lost events is told to admins and owners, once a day", async () => {
  const admins = [stage.admin, stage.owner].map(({ userId }) => emailOf(userId)).sort();
  const lose = () => ctx.deliveryFailures.endpoints.set("whk_1", stage);
  lose();
  await tellOfLostEvents(ctx);
  const mails = await tell();
  expect(mails.map(({ to }) => to).sort()).toEqual(admins);
  expect(mails[0]?.text).toContain("whk_1");
  lose();
  ctx.clock.now += DAY_MS - 1;
  expect([await tellOfLostEvents(ctx), await tell()]).toEqual([0, []]);
  lose();
  ctx.clock.now += 1;
  expect(await tellOfLostEvents(ctx)).toBe(2);
  expect(ctx.deliveryFailures.endpoints.size).toBe(0);
});

test("what is wrong with the service is told to the admins and owners of every organisation", async () => {
  const other = await createStage(ctx);
  await tellOfTrouble(ctx, [{ name: "disk", message: "The disk has less than 100 MiB left." }]);
  const mails = await tell();
  expect(mails.map(({ to }) => to).sort()).toEqual(
    [stage.admin, stage.owner, other.admin, other.owner].map(({ userId }) => emailOf(userId)).sort(),
  );
  expect(mails[0]).toMatchObject({
    subject: "Holdfast needs attention: disk",
    text: expect.stringContaining("The disk has less than 100 MiB left."),
  });
});
