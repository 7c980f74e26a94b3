import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { inviteUser } from "../../../src/services/admin/invitations.ts";
import { issuePasswordReset } from "../../../src/services/admin/password-resets.ts";
import { removeUser } from "../../../src/services/admin/users.ts";
import { signInByPasskey } from "../../../src/services/auth/passkeys/sign-in.ts";
import { signIn } from "../../../src/services/auth/sign-in.ts";
import { tellOfLostEvents, tellOfTrouble } from "../../../src/services/notices/trouble.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { enrol } from "../../support/passkeys.ts";
import { startTestShell } from "../../support/server.ts";
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

describe("an invitation", () => {
  const input = () =>
    ({
      organisation_id: stage.organisationId,
      email: "ada@example.com",
      name: "Ada",
      role: "operator",
    }) as const;
  const until = () => new Date(ctx.now() + 7 * DAY_MS).toISOString();

  test("says who invites, to which organisation, as which role and until when, and has the link", async () => {
    const { link } = must(await inviteUser(ctx, stage.admin, input()));
    const [mail, ...others] = await tell();
    const organisation = ctx.reader.organisations.get(stage.organisationId);
    const admin = ctx.reader.users.get(stage.admin.userId);
    expect([mail?.to, others]).toEqual(["ada@example.com", []]);
    expect(mail?.subject).toBe(`You are invited to ${organisation?.name}`);
    expect(mail?.text).toContain(
      `${admin?.name} (${admin?.email}) invites you to ${organisation?.name}, as operator.`,
    );
    expect(mail?.text).toContain(`It works once, until ${until()}.`);
    expect(mail?.text).toContain(`\n${link.url}\n`);
    expect(mail?.text).not.toContain("new password");
  });

  test("made anew by another person says so, and that of the machine's operator names nobody", async () => {
    const { user } = must(await inviteUser(ctx, MACHINE, input()));
    expect((await tell())[0]?.text).toContain("The operator of this Holdfast invites you to");
    must(await issuePasswordReset(ctx, stage.owner, { user_id: user.id }));
    const owner = ctx.reader.users.get(stage.owner.userId);
    const [mail] = await tell();
    expect(mail?.subject).toStartWith("You are invited to");
    expect(mail?.text).toContain(`${owner?.name} (${owner?.email}) invites you`);
  });
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

test("a sign-in by passkey from a new place is told too", async () => {
  const service = startTestShell({ notices: telling.notices });
  try {
    const home = await service.organisation();
    const { operator } = home.people;
    const { authenticator, credential } = await enrol(service, operator);
    const tellThere = async () => {
      await telling.deliver(service.ctx);
      return telling.sent().map(({ to, subject }) => [to, subject]);
    };
    await tellThere();
    const from = async (address: string) => {
      const options = (await service.post("/auth/passkey/sign-in/options", {}, { key: null })).body;
      const response = authenticator.get(options, credential);
      const client = { address, network: address, agent: "Firefox/128" };
      must(await signInByPasskey(service.ctx, { response: response as never }, client));
    };
    await from("192.0.2.7");
    expect(await tellThere()).toEqual([[operator.email, "A sign-in from a new place"]]);
    await from("192.0.2.7");
    expect(await tellThere()).toEqual([]);
  } finally {
    await service.close();
  }
});

test("a link for somebody who is gone is forgotten with its notice", async () => {
  must(await issuePasswordReset(ctx, MACHINE, { user_id: stage.operator.userId }));
  must(await removeUser(ctx, MACHINE, { user_id: stage.operator.userId }));
  expect(await tell()).toEqual([]);
  expect(ctx.reader.notices.ofUser(stage.operator.userId, 1)).toMatchObject([
    { status: "dropped", encryptedLink: null, nextAttemptAt: null },
  ]);
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
