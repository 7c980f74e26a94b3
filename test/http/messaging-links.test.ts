import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { hashSecret } from "../../src/core/api-key.ts";
import { forgetOld } from "../../src/jobs/retention.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { endSignInsOf } from "../../src/services/admin/sign-ins.ts";
import { removeUser, setUserRole } from "../../src/services/admin/users.ts";
import { BOT_NAME, refusing } from "../support/bot-api.ts";
import { CHAT, type Chats, NOTICES, startChats } from "../support/chats.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";

/** How a person links a chat with the bot, and how the link ends (docs/notices, "The messaging bot"). */

const NEW_PASSWORD = "velvet harbour ginger notion";
const MINUTE_MS = 60_000;
const ADA = 42;

let chats: Chats;
let home: TestOrganisation;
let person: Person;
beforeEach(async () => {
  chats = startChats();
  home = await chats.service.organisation();
  person = home.people.operator;
});
afterEach(() => chats.stop());

const accountOf = ({ id }: Person) => chats.service.ctx.reader.messaging.accountOf(id);
const entries = (action: string) =>
  chats.service.ctx.reader.auditEntries.list(home.id, null, 50).filter((entry) => entry.action === action);
const page = (who: Person) => chats.openConsole(who.as).get(NOTICES);
const UNKNOWN = "This code is unknown, used or out of date.";

describe("a code", () => {
  test("links the chat that sends it, tells who it is linked to, and is in the audit log", async () => {
    expect((await page(person)).text).toContain("Not linked");
    const code = await chats.code(person);
    const said = await chats.writes(ADA, `/start ${code.replaceAll("-", "")}`, { username: "ada_l" });
    expect(said).toBe(
      `This chat is linked to ${person.email.split("@")[0]} (${person.email}), of ${home.name}. Notices come here. Send /stop to unlink it.`,
    );
    const account = {
      ...{ userId: person.id, organisationId: home.id, chatId: String(ADA), username: "ada_l" },
      linkedAt: chats.service.clock.now,
    };
    expect(accountOf(person)).toEqual(account);
    const shown = await page(person);
    expect(shown.text).toContain("Chat @ada_l");
    expect((await page(home.people.admin)).text).toContain("Not linked");
    expect(entries("messaging.linked")).toMatchObject([
      {
        ...{ actor: { kind: "user", id: person.id }, subject: person.id, before: null },
        after: { chat_id: "42", username: "ada_l" },
      },
    ]);
  });

  test("may be typed, in any case and with spaces", async () => {
    const code = await chats.code(person);
    expect(await chats.writes(ADA, ` ${code.toLowerCase().replaceAll("-", " ")} `)).toContain("is linked to");
    expect(accountOf(person)).toMatchObject({ chatId: "42", username: null });
  });

  test("is shown once, with the way to the bot, and only its hash is kept", async () => {
    const browser = chats.openConsole(person.as);
    const form = await browser.formOn(CHAT, CHAT);
    const shown = await browser.post(CHAT, { ...form, password: PASSWORD });
    const [, code = ""] = /value="([0-9A-Z-]{14})"/.exec(shown.html) ?? [];
    const bare = code.replaceAll("-", "");
    expect(shown.html).toContain(`href="https://t.me/${BOT_NAME}?start=${bare}"`);
    expect(shown.headers.get("cache-control")).toBe("no-store");
    expect((await browser.get(CHAT)).html).not.toContain(code);
    const kept = chats.service.ctx.ledger.bytes();
    expect([kept.includes(bare), kept.includes(hashSecret(bare))]).toEqual([false, true]);
    // A second click makes no second code.
    expect((await browser.post(CHAT, { ...form, password: PASSWORD })).html).toContain(code);
  });

  test("is shown without the way to the bot where its name is not known", async () => {
    chats.server.answer("getMe", refusing(500, "not now"));
    const browser = chats.openConsole(person.as);
    const shown = await browser.post(CHAT, { ...(await browser.formOn(CHAT, CHAT)), password: PASSWORD });
    expect(shown.status).toBe(200);
    expect(shown.html).not.toContain("t.me");
    expect(shown.text).toContain("the bot of this instance");
  });

  test("is made with the password alone", async () => {
    const browser = chats.openConsole(person.as);
    for (const password of ["", "wrong horse battery staple"]) {
      const shown = await browser.post(CHAT, { ...(await browser.formOn(CHAT, CHAT)), password });
      expect([shown.status, shown.text]).toEqual([401, expect.stringContaining("The password is wrong.")]);
    }
    expect(chats.service.ctx.reader.messaging.codeOf(person.id)).toBeNull();
  });

  test("works once", async () => {
    const code = await chats.code(person);
    expect(await chats.writes(ADA, code)).toContain("is linked to");
    expect(await chats.writes(43, code)).toContain(UNKNOWN);
    expect(chats.service.ctx.reader.messaging.accountOfChat("43")).toBeNull();
    await chats.writes(ADA, "/stop");
    expect(await chats.writes(ADA, code)).toContain(UNKNOWN);
    expect(accountOf(person)).toBeNull();
  });

  test("works for ten minutes, and is forgotten later", async () => {
    const late = await chats.code(person);
    chats.service.clock.now += 10 * MINUTE_MS;
    expect(await chats.writes(ADA, late)).toContain(UNKNOWN);
    chats.service.clock.now -= 1;
    expect(await chats.writes(ADA, late)).toContain("is linked to");
    const { ctx } = chats.service;
    await chats.code(home.people.admin);
    expect(
      await ctx.store.forget({ idempotencyKeysBefore: 0, endedBefore: ctx.now(), deliveriesBefore: 0 }, 9),
    ).toBe(0);
    expect(
      await ctx.store.forget(
        { idempotencyKeysBefore: 0, endedBefore: ctx.now() + 11 * MINUTE_MS, deliveriesBefore: 0 },
        9,
      ),
    ).toBe(1);
    expect(ctx.reader.messaging.codeOf(home.people.admin.id)).toBeNull();
    await forgetOld(ctx);
    expect(accountOf(person)).not.toBeNull();
  });

  test("makes the person's earlier one void", async () => {
    const first = await chats.code(person);
    const second = await chats.code(person);
    expect(await chats.writes(ADA, first)).toContain(UNKNOWN);
    expect(await chats.writes(ADA, second)).toContain("is linked to");
  });

  test("of a person who was removed or signed out everywhere is void", async () => {
    const code = await chats.code(person);
    must(await endSignInsOf(chats.service.ctx, MACHINE, { user_id: person.id }, null));
    expect(await chats.writes(ADA, code)).toContain(UNKNOWN);
    const other = await chats.code(home.people.admin);
    must(await removeUser(chats.service.ctx, MACHINE, { user_id: home.people.admin.id }));
    expect(await chats.writes(ADA, other)).toContain(UNKNOWN);
  });

  test("that is guessed: a chat has five tries a minute, then nothing is looked up", async () => {
    const code = await chats.code(person);
    for (let count = 0; count < 5; count++)
      expect(await chats.writes(ADA, `000000${100_000 + count}`)).toContain(UNKNOWN);
    expect(await chats.writes(ADA, code)).toBeUndefined();
    expect(accountOf(person)).toBeNull();
    chats.steady.now += MINUTE_MS;
    expect(await chats.writes(ADA, code)).toContain("is linked to");
  });

  test("in a group links nothing", async () => {
    const code = await chats.code(person);
    const update = chats.message(ADA, code);
    await chats.taken({
      ...update,
      message: { ...update.message, chat: { id: -5, type: "group" } },
    });
    expect(accountOf(person)).toBeNull();
  });
});

describe("one chat, one person", () => {
  test("a chat that is linked is not linked to another", async () => {
    await chats.link(person, ADA);
    expect(await chats.writes(ADA, await chats.code(home.people.admin))).toBe(
      "This chat is linked already. Send /stop first.",
    );
    expect(accountOf(home.people.admin)).toBeNull();
  });

  test("of another organisation neither", async () => {
    await chats.link(person, ADA);
    const other = await chats.service.organisation();
    expect(await chats.writes(ADA, await chats.code(other.people.owner))).toContain("is linked already");
    expect(accountOf(other.people.owner)).toBeNull();
  });

  test("who has linked one makes no further code, and one that was made in a race links nothing", async () => {
    const code = await chats.code(person);
    await chats.link(home.people.admin, ADA);
    const [first, second] = await Promise.all([chats.writes(43, code), chats.writes(44, code)]);
    expect([first, second].filter((said) => said?.includes("is linked to"))).toHaveLength(1);
    expect(await chats.code(person)).toContain("A chat is linked already. Unlink it first.");
  });

  test("a linked chat hears whose it is, a stranger's how to link it, and neither anything else", async () => {
    await chats.link(person, ADA);
    for (const text of ["/start", "/help", "hello"])
      expect(await chats.writes(ADA, text)).toContain(`This chat is linked to`);
    expect(await chats.writes(43, "/start")).toContain("make a code in the console");
    expect(await chats.writes(43, "/stop")).toBe("This chat is not linked to anybody.");
  });
});

describe("the link ends", () => {
  beforeEach(() => chats.link(person, ADA));
  const ended = () => entries("messaging.unlinked");
  const expectEnded = () => {
    expect(accountOf(person)).toBeNull();
    expect(ended()).toMatchObject([
      { subject: person.id, before: { chat_id: "42", username: null }, after: null },
    ]);
  };

  test("by /stop in the chat", async () => {
    expect(await chats.writes(ADA, "/stop")).toContain("is not linked any more");
    expectEnded();
    expect(ended()[0]?.actor).toEqual({ kind: "user", id: person.id });
  });

  test("at the console", async () => {
    const browser = chats.openConsole(person.as);
    const form = await browser.formOn(NOTICES, `${CHAT}/unlink`);
    expect((await browser.post(`${CHAT}/unlink`, form)).to).toBe(`${NOTICES}?done=unlinked`);
    expectEnded();
    expect((await browser.get(`${NOTICES}?done=unlinked`)).text).toContain(
      "Your chat is not linked any more.",
    );
    // Again changes nothing.
    const again = { ...form, _key: crypto.randomUUID() };
    expect((await browser.post(`${CHAT}/unlink`, again)).status).toBe(303);
    expect(ended()).toHaveLength(1);
  });

  test("where the person blocks the bot", async () => {
    chats.server.answer("sendMessage", refusing(403, "Forbidden: bot was blocked by the user"));
    await chats.escalated(home);
    await chats.tell();
    expectEnded();
    expect(chats.service.ctx.reader.notices.ofUser(person.id, 1)).toMatchObject([
      { status: "exhausted", attempts: 1, answer: "403 Forbidden: bot was blocked by the user" },
    ]);
  });

  test("where the person is removed", async () => {
    must(await removeUser(chats.service.ctx, MACHINE, { user_id: person.id }));
    expectEnded();
    expect(await chats.writes(ADA, "hello")).toContain("make a code");
  });

  test("where the person signs out everywhere", async () => {
    const browser = chats.openConsole(person.as);
    await browser.post("/console/account/sign-out", {
      ...(await browser.formOn("/console/account", "/console/account/sign-out")),
      sign_in: "",
    });
    expectEnded();
  });

  test("where an admin signs them out everywhere, also if they are signed in nowhere; one sign-in alone ends nothing", async () => {
    const { ctx } = chats.service;
    const { data } = (await chats.service.get("/auth/sessions", { as: person.as })).body;
    must(await endSignInsOf(ctx, MACHINE, { user_id: person.id, sign_in_id: data[0].id }, null));
    expect(accountOf(person)).not.toBeNull();
    must(await endSignInsOf(ctx, MACHINE, { user_id: person.id }, null));
    expectEnded();
  });

  test("where they choose a new password, or by a reset link", async () => {
    const changed = await chats.service.post(
      "/auth/password",
      { current_password: PASSWORD, new_password: NEW_PASSWORD },
      { as: person.as, key: null },
    );
    expect(changed.status).toBe(204);
    expectEnded();
    const { admin } = home.people;
    await chats.link(admin, 43);
    const reset = must(await issuePasswordReset(chats.service.ctx, MACHINE, { user_id: admin.id }));
    const token = new URL(reset.url).hash.slice(1);
    const body = { token, new_password: NEW_PASSWORD };
    expect((await chats.service.post("/auth/password/reset", body, { key: null })).status).toBe(204);
    expect(accountOf(admin)).toBeNull();
  });

  test("not by another role", async () => {
    must(await setUserRole(chats.service.ctx, MACHINE, { user_id: person.id, role: "viewer" }));
    expect(accountOf(person)).not.toBeNull();
  });
});

test("a chat that two write into at once is one row, which the tables hold too", async () => {
  await chats.link(person, ADA);
  const { admin } = home.people;
  const [account] = chats.service.ctx.ledger.allRows("messaging_accounts");
  const columns = Object.keys(account ?? {});
  const values = columns.map((name) => (name === "user_id" ? "?" : name));
  expect(() =>
    chats.service.ctx.ledger.change(
      `INSERT INTO messaging_accounts (rowid, ${columns.join(", ")}) SELECT 99, ${values.join(", ")} FROM messaging_accounts`,
      admin.id,
    ),
  ).toThrow(/unique constraint.*messaging_accounts.*chat/i);
});

test("without a bot, or without its webhook, the page says what the operator sets, and makes no code", async () => {
  const deaf = startChats({ messaging: { ...chats.messaging, hears: false } });
  const none = startChats({ messaging: null });
  for (const [those, setting] of [
    [deaf, "HOLDFAST_MESSAGING_SECRET"],
    [none, "HOLDFAST_MESSAGING_TOKEN"],
  ] as const) {
    const { people } = await those.service.organisation();
    const browser = those.openConsole(people.viewer.as);
    expect((await browser.get(CHAT)).text).toContain(setting);
    const form = { _key: crypto.randomUUID(), _mode: "live", password: PASSWORD };
    expect((await browser.post(CHAT, form)).html).not.toContain("It works once");
    expect(those.service.ctx.reader.messaging.codeOf(people.viewer.id)).toBeNull();
    await those.stop();
  }
});
