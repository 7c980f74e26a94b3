import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { setMessagingDecisions, setSecondFactor } from "../../src/services/admin/switches.ts";
import { removeUser, setUserRole } from "../../src/services/admin/users.ts";
import { refusing } from "../support/bot-api.ts";
import { buttonsIn, type Chats, startChats } from "../support/chats.ts";
import type { Json } from "../support/client.ts";
import { must, type Person, type TestOrganisation } from "../support/organisations.ts";
import { enrol, setThreshold } from "../support/passkeys.ts";

/** Escalations that people decide by buttons in their chats (docs/notices, "The messaging bot"). */

const OPERATOR = 42;
const ADMIN = 43;
const VIEWER = 44;

let chats: Chats;
let home: TestOrganisation;
let operator: Person;
beforeEach(async () => {
  chats = startChats();
  home = await chats.service.organisation();
  operator = home.people.operator;
  await allow(true);
  await chats.link(operator, OPERATOR);
  await chats.link(home.people.admin, ADMIN);
});
afterEach(() => chats.stop());

const allow = async (on: boolean, { id } = home) =>
  void must(await setMessagingDecisions(chats.service.ctx, MACHINE, { organisation_id: id, on }));
const stateOf = (id: string) => chats.service.ctx.reader.warrants.find(id)?.state;
const entries = (action: string) =>
  chats.service.ctx.reader.auditEntries.list(home.id, null, 50).filter((entry) => entry.action === action);

/** A warrant that waits, and the message that the operator's chat got of it. */
async function told(overrides: object = {}, chatId = OPERATOR) {
  const waiting = await chats.escalated(home, overrides);
  const sent = (await chats.tell()).get(String(chatId));
  return { ...waiting, message: sent, buttons: buttonsIn(sent) };
}

/** The notices of the next day. */
const retold = () => {
  chats.service.clock.now += 24 * 3_600_000;
  return chats.tell();
};

/** The data of the button that decides, once it was asked for. */
async function asked(buttons: Readonly<Record<string, string>>, words = "Release", chatId = OPERATOR) {
  const { buttons: next } = await chats.presses(chatId, buttons[words] ?? "");
  return next[`Yes, ${words.toLowerCase()}`] ?? "";
}

/** Nothing but the message may change. */
async function refuses(chatId: number, data: string, words: string | RegExp) {
  const rows = () => ({ ...chats.service.allRows(home), notices: [] });
  const before = rows();
  const after = await chats.presses(chatId, data);
  expect(`${after.text ?? ""}${after.said ?? ""}`).toMatch(words);
  expect(after.buttons).toEqual({});
  expect(rows()).toEqual(before);
  return after;
}

describe("a notice of one escalation", () => {
  test("says what is held, for whom and why, with a link, and has two buttons", async () => {
    const { id, escalation, message, buttons } = await told({ amount: "840000" });
    expect(message).toEqual({
      chat_id: String(OPERATOR),
      text: [
        "0.84 USDC waits for your decision",
        "",
        `0.84 USDC to acme (${id})`,
        "Why: status_mismatch. The amount stays held until a person decides.",
        "",
        `http://localhost:8080/console/escalations/${escalation}`,
        "",
        "You choose what you hear of, and when: http://localhost:8080/console/settings/notices",
      ].join("\n"),
      link_preview_options: { is_disabled: true },
      reply_markup: expect.anything(),
    });
    expect(Object.keys(buttons)).toEqual(["Release", "Refund"]);
    for (const data of Object.values(buttons)) expect(Buffer.byteLength(data)).toBeLessThanOrEqual(64);
  });

  test("of a hostile payee is that text and nothing else, however long", async () => {
    const payee = `<a href="https://evil.example">_*[x](tg://user?id=1)*_ /stop \u{1f4b8}`.padEnd(
      512,
      "\u{1f4b8}x",
    );
    const { message, buttons } = await told({ payee: payee.slice(0, 500) });
    expect(message.text).toContain(`0.0001 USDC to ${payee.slice(0, 500)} (`);
    expect(message).not.toHaveProperty("parse_mode");
    expect(message).not.toHaveProperty("entities");
    const { text } = await chats.presses(OPERATOR, buttons.Release ?? "");
    expect(text).toStartWith(`Release 0.0001 USDC to ${payee.slice(0, 500)}?`);
  });

  test("of the sandbox says so, also in the question and after it", async () => {
    const { message, buttons, id } = await told({ as: home.sandbox.as });
    expect(message.text).toStartWith("SANDBOX: ");
    const first = await chats.presses(OPERATOR, buttons.Refund ?? "");
    expect(first.text).toStartWith("SANDBOX: Refund 0.0001 USDC?");
    const { text } = await chats.presses(OPERATOR, first.buttons["Yes, refund"] ?? "");
    expect(text).toStartWith("SANDBOX: Refunded: 0.0001 USDC returned to available");
    expect(stateOf(id)).toBe("refunded");
  });

  test("has no buttons while the organisation does not allow it, by default too", async () => {
    await allow(false);
    expect((await told()).buttons).toEqual({});
    const other = await chats.service.organisation();
    await chats.link(other.people.owner, 99);
    await chats.escalated(other);
    expect(buttonsIn((await chats.tell()).get("99"))).toEqual({});
  });

  test("has none from the threshold on, for another asset, or while the second factor is on", async () => {
    await enrol(chats.service, home.people.owner);
    const euros = { organisation_id: home.id, mode: "live", amount: "10", asset: "EUR" } as const;
    must(await fundBalance(chats.service.ctx, MACHINE, euros));
    const words = async (threshold: string, overrides: object) => {
      await setThreshold(chats.service, home, null);
      await chats.escalated(home, overrides);
      await setThreshold(chats.service, home, threshold);
      return Object.keys(buttonsIn((await chats.tell()).get(String(OPERATOR))));
    };
    expect(await words("1000", { amount: "999" })).toEqual(["Release", "Refund"]);
    expect(await words("1000", { amount: "1000" })).toEqual([]);
    expect(await words("1000", { amount: "1", asset: "EUR" })).toEqual([]);
    const { ctx } = chats.service;
    must(await setSecondFactor(ctx, MACHINE, { organisation_id: home.id, on: true }));
    expect(await words("1000", { amount: "1" })).toEqual([]);
  });

  test("goes to whoever has linked a chat and chose messages, and to nobody else", async () => {
    await chats.escalated(home);
    expect([...(await chats.tell()).keys()].sort()).toEqual([String(OPERATOR), String(ADMIN)]);
    expect(chats.service.ctx.reader.notices.ofUser(home.people.owner.id, 9)).toEqual([]);
    const browser = chats.openConsole(operator.as);
    const path = "/console/settings/notices";
    const { messaging: _, ...form } = await browser.formOn(path, path);
    expect((await browser.post(path, form)).status).toBe(303);
    await chats.escalated(home);
    expect([...(await chats.tell()).keys()]).toEqual([String(ADMIN)]);
  });

  test("of several escalations has no buttons, and a long one keeps its link", async () => {
    for (let count = 0; count < 12; count++) await chats.escalated(home, { payee: "p".repeat(512) });
    const message = (await chats.tell()).get(String(OPERATOR));
    expect(buttonsIn(message)).toEqual({});
    expect(message.text.length).toBeLessThanOrEqual(4_096);
    expect(message.text).toContain("\nhttp://localhost:8080/console/escalations\n");
  });
});

describe("a decision", () => {
  test.each([
    [
      "Release",
      "released",
      "Released: 0.0001 USDC was paid to acme.",
      { available: 999_900n, held: 0n, paid: 100n },
    ],
    [
      "Refund",
      "refunded",
      "Refunded: 0.0001 USDC returned to available, and nothing was paid to acme.",
      { available: 1_000_000n, held: 0n, paid: 0n },
    ],
  ] as const)(
    "%s is asked for, made once, and shown with who made it",
    async (words, state, says, balance) => {
      const { id, escalation, buttons } = await told();
      const question = await chats.presses(OPERATOR, buttons[words] ?? "");
      expect(question.text).toStartWith(`${words} 0.0001 USDC`);
      expect(Object.keys(question.buttons)).toEqual([`Yes, ${words.toLowerCase()}`, "No"]);
      expect(stateOf(id)).toBe("escalated");
      const done = await chats.presses(OPERATOR, question.buttons[`Yes, ${words.toLowerCase()}`] ?? "");
      expect(done).toEqual({
        text: [
          says,
          "",
          `By ${operator.email.split("@")[0]}, on 2030-01-15 at 12:05 UTC.`,
          `http://localhost:8080/console/warrants/${id}`,
        ].join("\n"),
        buttons: {},
        said: null,
      });
      expect(stateOf(id)).toBe(state);
      expect(chats.service.balance(home)).toEqual(balance);
      // The trace has who it was, and the audit log where.
      const trace = await chats.service.get(`/v1/warrants/${id}/trace`, { as: operator.as });
      expect(trace.body.data.at(-1)).toMatchObject({ to: state, actor: { kind: "user", id: operator.id } });
      expect(entries("escalation.resolved_in_chat")).toMatchObject([
        {
          ...{ actor: { kind: "user", id: operator.id }, subject: escalation },
          before: { status: "open" },
          after: { status: "resolved", decision: words.toLowerCase(), resolved_by: operator.id },
        },
      ]);
    },
  );

  test("is not made by No, which shows the notice again", async () => {
    const { id, message, buttons } = await told();
    const question = await chats.presses(OPERATOR, buttons.Release ?? "");
    const back = await chats.presses(OPERATOR, question.buttons.No ?? "");
    expect([back.text, back.buttons]).toEqual([message.text, buttons]);
    expect(stateOf(id)).toBe("escalated");
  });

  test("pressed again, or in an update that comes again, is shown again and made once", async () => {
    const { id, buttons } = await told();
    const data = await asked(buttons);
    const update = chats.press(OPERATOR, data);
    await chats.taken(update);
    await chats.taken(update);
    const again = await chats.presses(OPERATOR, data);
    expect(again.text).toStartWith("Released:");
    expect([stateOf(id), chats.service.balance(home).paid]).toEqual(["released", 100n]);
    expect(entries("escalation.resolved_in_chat")).toHaveLength(1);
    for (const old of Object.values(buttons))
      expect((await chats.presses(OPERATOR, old)).text).toStartWith("Released:");
  });

  test("of two chats at once, and of two presses in one: the first counts, and both chats show it", async () => {
    const { id } = await chats.escalated(home);
    const sent = await chats.tell();
    const release = await asked(buttonsIn(sent.get(String(OPERATOR))));
    const refund = await asked(buttonsIn(sent.get(String(ADMIN))), "Refund", ADMIN);
    await Promise.all(
      [
        chats.press(OPERATOR, release),
        chats.press(ADMIN, refund),
        chats.press(OPERATOR, release),
        chats.press(ADMIN, refund),
      ].map((update) => chats.post(update)),
    );
    const texts = (await chats.idle())
      .filter(({ method }) => method === "editMessageText")
      .map(({ parameters }) => parameters.text.split("\n")[0]);
    expect([texts.length, new Set(texts).size]).toEqual([4, 1]);
    expect(["released", "refunded"]).toContain(stateOf(id) ?? "");
    expect(entries("escalation.resolved_in_chat")).toHaveLength(1);
  });

  test("that somebody made at the console is shown, by whom, and not made again", async () => {
    const { id, escalation, buttons } = await told();
    const data = await asked(buttons);
    const { owner } = home.people;
    const body = { decision: "partial_release", released_bps: 2_500 };
    await chats.service.post(`/v1/console/escalations/${escalation}/resolve`, body, { as: owner.as });
    for (const pressed of [data, buttons.Refund ?? ""]) {
      const { text } = await chats.presses(OPERATOR, pressed);
      expect(text).toStartWith("Released in part: 0.000025 USDC of 0.0001 USDC was paid to acme.");
      expect(text).toContain(`By ${owner.email.split("@")[0]},`);
    }
    expect(stateOf(id)).toBe("partially_released");
  });

  test("is said to the press where the message cannot be written anew", async () => {
    const { id, buttons } = await told();
    const data = await asked(buttons);
    chats.server.answer("editMessageText", refusing(500, "later"));
    const { said } = await chats.presses(OPERATOR, data);
    expect(said).toStartWith("Released: 0.0001 USDC was paid to acme.");
    expect(stateOf(id)).toBe("released");
  });
});

describe("is refused in plain words, and moves nothing:", () => {
  const open = "Decide it in the console: http://localhost:8080/console/escalations/";

  test("where the organisation has forbidden it meanwhile", async () => {
    const { buttons } = await told();
    const data = await asked(buttons);
    await allow(false);
    for (const pressed of [buttons.Release ?? "", data]) {
      const { text } = await refuses(
        OPERATOR,
        pressed,
        "Your organisation does not allow decisions in a chat.",
      );
      expect(text).toStartWith("Nothing was decided.");
      expect(text).toContain(open);
    }
  });

  test("where the second factor is on, and from the threshold on", async () => {
    const { buttons } = await told();
    const data = await asked(buttons);
    await enrol(chats.service, home.people.owner);
    for (const threshold of ["100", "99", "0"]) {
      await setThreshold(chats.service, home, threshold);
      for (const pressed of [buttons.Refund ?? "", data])
        await refuses(
          OPERATOR,
          pressed,
          "This amount reaches the passkey threshold, so it needs your passkey.",
        );
    }
    await setThreshold(chats.service, home, null);
    must(await setSecondFactor(chats.service.ctx, MACHINE, { organisation_id: home.id, on: true }));
    await refuses(OPERATOR, buttons.Release ?? "", "asks for a passkey beside the password");
    await refuses(OPERATOR, data, "asks you for a passkey");
    must(await setSecondFactor(chats.service.ctx, MACHINE, { organisation_id: home.id, on: false }));
    await setThreshold(chats.service, home, "101");
    expect((await chats.presses(OPERATOR, data)).text).toStartWith("Released:");
  });

  test("to who was demoted", async () => {
    const { buttons } = await told();
    const data = await asked(buttons);
    must(await setUserRole(chats.service.ctx, MACHINE, { user_id: operator.id, role: "viewer" }));
    for (const pressed of [buttons.Release ?? "", data])
      await refuses(OPERATOR, pressed, "This needs the role operator or above; yours is viewer.");
  });

  test("to who was removed, or has unlinked the chat", async () => {
    const { buttons } = await told();
    const data = await asked(buttons);
    await chats.writes(OPERATOR, "/stop");
    for (const pressed of [buttons.Release ?? "", data])
      await refuses(OPERATOR, pressed, "This chat is not linked to anybody.");
    const admin = await asked(buttonsIn((await retold()).get(String(ADMIN))), "Release", ADMIN);
    must(await removeUser(chats.service.ctx, MACHINE, { user_id: home.people.admin.id }));
    await refuses(ADMIN, admin, "This chat is not linked to anybody.");
  });

  test("a dispute to operators and to who raised it; a second person decides it", async () => {
    await chats.link(home.people.owner, 45);
    const { id, escalation } = await chats.escalated(home);
    const sent = await chats.tell();
    const [mine, admins] = [OPERATOR, ADMIN].map((chat) => buttonsIn(sent.get(String(chat))));
    const dispute = (as: Person["as"]) =>
      chats.service.post(`/v1/console/escalations/${escalation}/resolve`, { decision: "dispute" }, { as });
    expect((await dispute(home.people.admin.as)).status).toBe(200);
    // What was shown before is another version.
    await refuses(OPERATOR, mine?.Release ?? "", /version/);
    await refuses(ADMIN, admins?.Release ?? "", /version/);
    const again = await retold();
    expect(buttonsIn(again.get(String(OPERATOR)))).toEqual({});
    expect(buttonsIn(again.get(String(ADMIN)))).toEqual({});
    expect(again.get("45").text).toContain("is disputed, and waits for you as a second person");
    const forged = (mine?.Release ?? "").replace("ask-release", "release").replace(/\d+$/, "4");
    await refuses(OPERATOR, forged, /role admin or above|cannot become/);
    const owners = buttonsIn(again.get("45"));
    const before = (owners.Refund ?? "").replace("ask-refund", "refund").replace(/\d+$/, "3");
    await refuses(45, before, /version/);
    const data = await asked(owners, "Refund", 45);
    expect((await chats.presses(45, data)).text).toStartWith("Refunded:");
    expect(stateOf(id)).toBe("refunded");
  });

  test("by what a client makes up: another's notice, another organisation's, and no notice at all", async () => {
    const { escalation } = await chats.escalated(home);
    const sent = await chats.tell();
    const admins = buttonsIn(sent.get(String(ADMIN))).Release ?? "";
    const tooOld = "This message is too old. Open the console.";
    await refuses(OPERATOR, admins, tooOld);
    await refuses(OPERATOR, admins.replace("ask-", ""), tooOld);
    const other = await chats.service.organisation();
    await allow(true, other);
    await chats.link(other.people.owner, 99);
    await refuses(99, admins.replace("ask-", ""), tooOld);
    for (const data of [
      "",
      "x",
      `release:${escalation}:3`,
      `release:ntc_${escalation.slice(4)}:3`,
      "release::",
    ])
      await refuses(OPERATOR, data, /not known|too old/);
  });

  test("to a viewer, who gets no such notice", async () => {
    await chats.link(home.people.viewer, VIEWER);
    const { message } = await told({}, VIEWER);
    expect(message).toBeUndefined();
  });
});

test("of a frozen warrant, it decides as at the console", async () => {
  const { id } = await chats.service.opened(home);
  must(await setAgentStatus(chats.service.ctx, MACHINE, { agent_id: home.live.id, status: "killed" }));
  const buttons = buttonsIn((await chats.tell()).get(String(OPERATOR)));
  expect((await chats.presses(OPERATOR, await asked(buttons, "Refund"))).text).toStartWith("Refunded:");
  expect(stateOf(id)).toBe("refunded");
});

test("a press is answered, whatever goes wrong behind it", async () => {
  const { buttons } = await told();
  const update = chats.press(OPERATOR, buttons.Release ?? "");
  chats.server.answer("editMessageText", () => new Response("", { status: 500 }));
  const calls = await chats.taken(update);
  expect(calls.map(({ method }: Json) => method)).toEqual(["editMessageText", "answerCallbackQuery"]);
});

test("presses in a chat are worked on in their order, so that no older answer covers a newer one", async () => {
  const { buttons } = await told();
  const data = await asked(buttons);
  const [hangs, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  chats.server.answer("editMessageText", async () => {
    arrived.resolve();
    await hangs.promise;
    return Response.json({ ok: true, result: {} });
  });
  await chats.post(chats.press(OPERATOR, buttons.Release ?? ""));
  await chats.post(chats.press(OPERATOR, data));
  await arrived.promise;
  // Another chat does not wait for it.
  expect(await chats.post(chats.message(VIEWER, "hi"))).toMatchObject({ status: 200 });
  await chats.messaging.intake.underWay().at(-1);
  expect(chats.server.asked().filter(({ method }) => method === "editMessageText")).toHaveLength(1);
  hangs.resolve();
  const later = (await chats.idle()).filter(({ method }) => method === "editMessageText");
  expect(later.map(({ parameters }) => parameters.text.split(":")[0])).toEqual(["Released"]);
});

test("an admin allows it at the console, an operator does not, and the audit log has both ways", async () => {
  const path = "/console/settings";
  const action = `${path}/messaging-decisions`;
  const admin = chats.openConsole(home.people.admin.as);
  expect((await admin.get(path)).text).toContain("Decisions in chats On");
  const off = await admin.post(action, await admin.formOn(path, action));
  expect(off.to).toBe(`${path}?done=decisions`);
  expect((await admin.get(path)).text).toContain("Decisions in chats Off");
  expect(await admin.post(action, await admin.formOn(path, action))).toMatchObject({ status: 303 });
  const { as } = operator;
  const form = { _key: crypto.randomUUID(), _mode: "live", to: "off" };
  expect((await chats.openConsole(as).post(action, form)).status).toBe(403);
  expect(
    entries("messaging_decisions.changed").map(({ after }) => (after as Json).messaging_decisions),
  ).toEqual([true, false, true]);
});
