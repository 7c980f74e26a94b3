import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { arrayOf, form, nameOf, object, orNull, text, type Wire } from "../../src/core/form.ts";

const pairForm = form("Pair", () =>
  object({ left: text, right: orNull(object({ far: text })), more: Type.Optional(arrayOf(text)) }),
);
type Pair = Wire<typeof pairForm>;

test("an encoder gives each field of its form, and no other", () => {
  const whole = (): Pair => ({ left: "a", right: { far: "b" } });
  // @ts-expect-error a field of the form is missing
  const missing = (): Pair => ({ left: "a" });
  // @ts-expect-error a field that the form does not have
  const unknown = (): Pair => ({ left: "a", right: null, centre: "c" });
  // @ts-expect-error the same further inside
  const unknownInside = (): Pair => ({ left: "a", right: { far: "b", near: "c" } });
  // @ts-expect-error of another type
  const other = (): Pair => ({ left: 1, right: null });
  for (const encode of [whole, missing, unknown, unknownInside, other]) expect(encode()).toBeObject();
});

test("a form is built when it is first asked for, once, under its name", () => {
  let built = 0;
  const countedForm = form("Counted", () => {
    built++;
    return object({ pair: pairForm() });
  });
  expect(built).toBe(0);
  expect(countedForm()).toBe(countedForm());
  expect(built).toBe(1);
  expect([nameOf(countedForm()), nameOf(countedForm().properties.pair), nameOf(text)]).toEqual([
    "Counted",
    "Pair",
    null,
  ]);
});
