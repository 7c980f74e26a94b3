import { describe, expect, test } from "bun:test";
import {
  displayCode,
  formatButton,
  newCode,
  parseButton,
  parseUpdate,
  readCode,
  readCommand,
} from "../../src/core/messaging.ts";

const person = { id: 42, is_bot: false, first_name: "Ada", username: "ada_l" };
const chat = { id: 42, type: "private" };
const message = { message_id: 1, from: person, chat, text: "hi" };
const query = { id: "99", from: person, message: { message_id: 7, chat }, data: "back:x:1" };

const parsed = (update: unknown) => parseUpdate(JSON.stringify(update));

describe("an update", () => {
  test("is a text, or a press of a button, in a private chat", () => {
    expect(parsed({ update_id: 5, message, more: [1] })).toEqual({
      ...{ id: 5, kind: "text", chatId: "42", username: "ada_l", text: "hi" },
    });
    expect(parsed({ update_id: 6, callback_query: query })).toEqual({
      ...{ id: 6, kind: "press", chatId: "42", messageId: 7, pressId: "99", data: "back:x:1" },
    });
  });

  test.each<[string, unknown]>([
    ["a group", { ...message, chat: { id: -42, type: "group" } }],
    ["a channel", { ...message, chat: { id: 42, type: "channel" } }],
    ["another sender", { ...message, from: { ...person, id: 43 } }],
    ["a bot", { ...message, from: { ...person, is_bot: true } }],
    ["nobody", { ...message, from: undefined }],
    ["a chat without a number", { ...message, chat: { id: "42", type: "private" }, from: { id: "42" } }],
    ["a picture", { ...message, text: undefined }],
    ["no object", "hi"],
  ])("of %s is ignored", (_, of) => {
    expect(parsed({ update_id: 5, message: of })).toMatchObject({ id: 5, kind: "ignored" });
  });

  test.each<[string, unknown]>([
    ["in a group", { ...query, message: { message_id: 7, chat: { id: -1, type: "supergroup" } } }],
    ["by somebody else", { ...query, from: { ...person, id: 43 } }],
    ["without its message", { ...query, message: undefined }],
    ["without data", { ...query, data: undefined }],
    ["without an id", { ...query, id: 99 }],
  ])("of a press %s is ignored", (_, of) => {
    expect(parsed({ update_id: 5, callback_query: of })).toMatchObject({ id: 5, kind: "ignored" });
  });

  test("of another kind is ignored", () => {
    expect(parsed({ update_id: 5, edited_message: message })).toMatchObject({ kind: "ignored" });
  });

  test.each(["", "{", "null", "[]", "5", "{}", '{"update_id":"5"}', '{"update_id":-1}', '{"update_id":1.5}'])(
    "%j is none",
    (text) => expect(parseUpdate(text)).toBeNull(),
  );

  test("keeps the start of a long text, and no name that is not one", () => {
    const long = { ...message, text: "x".repeat(5_000), from: { ...person, username: "<b>" } };
    expect(parsed({ update_id: 5, message: long })).toMatchObject({ text: "x".repeat(200), username: null });
  });
});

test("a code has 60 random bits, and is read as people type it", () => {
  let byte = 0;
  const code = newCode(() => byte++ * 7);
  expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{12}$/);
  expect(newCode(() => 255)).toBe("ZZZZZZZZZZZZ");
  expect(displayCode("ABCDEFGHJKMN")).toBe("ABCD-EFGH-JKMN");
  for (const typed of ["ABCD-EFGH-JKMN", " abcd efgh jkmn ", "abcdefghjkmn"])
    expect(readCode(typed)).toBe("ABCDEFGHJKMN");
  expect(readCode("oil0-0000-0000")).toBe("011000000000");
  for (const none of ["", "ABCD-EFGH-JKM", "ABCD-EFGH-JKMNP", "ABCD-EFGH-JKM!", "/start"])
    expect(readCode(none)).toBeNull();
});

test("a command is what begins with a slash", () => {
  expect(readCommand("/start ABC")).toEqual({ name: "start", rest: "ABC" });
  expect(readCommand(" /start@some_bot   ABC ")).toEqual({ name: "start", rest: "ABC" });
  expect(readCommand("/stop")).toEqual({ name: "stop", rest: "" });
  for (const text of ["stop", "/", "/Stop", "a /stop", "/stop!"]) expect(readCommand(text)).toBeNull();
});

describe("a button", () => {
  const noticeId = "ntc_01KAN2M3N4P5Q6R7S8T9V0W1X2";

  test("fits into 64 bytes, and is read as it was written", () => {
    for (const verb of ["ask-release", "ask-refund", "release", "refund", "back"] as const) {
      const button = { verb, noticeId, version: 999_999_999_999_999 };
      const data = formatButton(button);
      expect(Buffer.byteLength(data)).toBeLessThanOrEqual(64);
      expect(parseButton(data)).toEqual(button);
    }
  });

  test.each([
    "",
    "release",
    `release:${noticeId}`,
    `release:${noticeId}:0`,
    `release:${noticeId}:-1`,
    `release:${noticeId}:1:1`,
    `release:${noticeId}:1e3`,
    `partial_release:${noticeId}:1`,
    `constructor:${noticeId}:1`,
    "release:esc_01KAN2M3N4P5Q6R7S8T9V0W1X2:1",
    "release:ntc_x:1",
  ])("%j is none", (data) => expect(parseButton(data)).toBeNull());
});
