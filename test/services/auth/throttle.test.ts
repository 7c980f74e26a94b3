import { expect, test } from "bun:test";
import { createSignInThrottle } from "../../../src/services/auth/throttle.ts";

/** decisions.md, Sign-in: ten failures a quarter-hour for one pair of e-mail and address, a hundred for an address. */

const QUARTER_MS = 15 * 60_000;

test("ten of a pair, a hundred of an address, and whole again after a quarter of an hour", () => {
  const throttle = createSignInThrottle();
  const admitted = (emails: readonly string[], address: string, now = 0): number =>
    emails.filter((email) => throttle.admit(email, address, now)).length;
  expect(admitted(Array(12).fill("a@x"), "192.0.2.1")).toBe(10);
  expect(admitted(Array(12).fill("a@x"), "192.0.2.2")).toBe(10);
  const many = Array.from({ length: 120 }, (_, index) => `${index}@x`);
  expect(admitted(many, "192.0.2.1")).toBe(90);
  expect(admitted(["a@x"], "192.0.2.1", QUARTER_MS)).toBe(1);
});

test("an attempt that did not fail costs nothing", () => {
  const throttle = createSignInThrottle();
  for (let again = 0; again < 30; again++) {
    expect(throttle.admit("a@x", "192.0.2.1", 0)).toBe(true);
    throttle.forget("a@x", "192.0.2.1", 0);
  }
});

test("beyond the cap newcomers share one counter, and who was known before keeps their own", () => {
  const throttle = createSignInThrottle(4);
  const admit = (email: string, address: string): boolean => throttle.admit(email, address, 0);
  expect([admit("a@x", "192.0.2.1"), admit("b@x", "192.0.2.2")]).toEqual([true, true]);
  const strangers = Array.from({ length: 150 }, (_, index) => admit(`${index}@x`, `198.51.100.${index}`));
  expect(strangers.filter((isAdmitted) => isAdmitted)).toHaveLength(100);
  expect([admit("a@x", "192.0.2.1"), admit("b@x", "192.0.2.2")]).toEqual([true, true]);
  throttle.forget("149@x", "198.51.100.149", 0);
  expect([admit("c@x", "192.0.2.3"), admit("d@x", "192.0.2.4")]).toEqual([true, false]);
  expect(throttle.admit("d@x", "192.0.2.4", QUARTER_MS)).toBe(true);
});
