import { describe, expect, test } from "bun:test";
import { createSignInThrottle, type SignInThrottle } from "../../../src/services/auth/throttle.ts";

/** Ten failures in a quarter of an hour for one pair of e-mail and address, a hundred for an address (README, "Sign-in"). */

const QUARTER_MS = 15 * 60_000;

/** Makes an attempt, which ends at once. Answers whether it was admitted. */
async function attempt(
  throttle: SignInThrottle,
  [email, address]: readonly [email: string, address: string],
  { failed = true, now = 0 } = {},
): Promise<boolean> {
  const end = await throttle.begin(email, address, () => now);
  end?.(failed);
  return end !== null;
}

test("ten for a pair, a hundred for an address, and all of them again after a quarter of an hour", async () => {
  const throttle = createSignInThrottle();
  const admitted = async (emails: readonly string[], address: string, now = 0): Promise<number> => {
    let count = 0;
    for (const email of emails) if (await attempt(throttle, [email, address], { now })) count += 1;
    return count;
  };
  expect(await admitted(Array(12).fill("a@x"), "192.0.2.1")).toBe(10);
  expect(await admitted(Array(12).fill("a@x"), "192.0.2.2")).toBe(10);
  const many = Array.from({ length: 120 }, (_, index) => `${index}@x`);
  expect(await admitted(many, "192.0.2.1")).toBe(90);
  expect(await admitted(["a@x"], "192.0.2.1", QUARTER_MS)).toBe(1);
});

test("an attempt that did not fail is not counted", async () => {
  const throttle = createSignInThrottle();
  for (let again = 0; again < 30; again++)
    expect(await attempt(throttle, ["a@x", "192.0.2.1"], { failed: false })).toBeTrue();
});

test("beyond the limit new callers share one counter, and earlier ones keep their own", async () => {
  const throttle = createSignInThrottle(4);
  const admit = (email: string, address: string, failed = true) =>
    attempt(throttle, [email, address], { failed });
  expect([await admit("a@x", "192.0.2.1"), await admit("b@x", "192.0.2.2")]).toEqual([true, true]);
  expect(await admit("149@x", "198.51.100.149", false)).toBeTrue();
  let strangers = 0;
  for (let index = 0; index < 150; index++)
    if (await admit(`${index}@x`, `198.51.100.${index}`)) strangers += 1;
  expect(strangers).toBe(100);
  expect([await admit("a@x", "192.0.2.1"), await admit("b@x", "192.0.2.2")]).toEqual([true, true]);
  expect(await admit("c@x", "192.0.2.3")).toBeFalse();
  expect(await attempt(throttle, ["d@x", "192.0.2.4"], { now: QUARTER_MS })).toBeTrue();
});

test("clearing failures clears those of the pair, not those of the address", async () => {
  const throttle = createSignInThrottle();
  for (let again = 0; again < 11; again++) await attempt(throttle, ["a@x", "192.0.2.1"]);
  for (let again = 0; again < 11; again++) await attempt(throttle, ["a@x", "192.0.2.2"]);
  throttle.forgive("a@x", "192.0.2.1", 0);
  expect(await attempt(throttle, ["a@x", "192.0.2.2"])).toBeFalse();
  let admitted = 0;
  for (let index = 0; index < 120; index++)
    if (await attempt(throttle, [`${index}@x`, "192.0.2.1"])) admitted += 1;
  expect(admitted).toBe(90);
});

describe("attempts that arrive together", () => {
  /** Starts them all; each ends one turn later. Answers how many were admitted, and the most that ran at once. */
  async function together(throttle: SignInThrottle, emails: readonly string[], failed: boolean) {
    let [inFlight, most] = [0, 0];
    const admitted = await Promise.all(
      emails.map(async (email) => {
        const end = await throttle.begin(email, "192.0.2.1", () => 0);
        if (!end) return false;
        inFlight += 1;
        most = Math.max(most, inFlight);
        await new Promise((resolve) => setImmediate(resolve));
        inFlight -= 1;
        end(failed);
        return true;
      }),
    );
    return { admitted: admitted.filter(Boolean).length, most };
  }
  const pair = (count: number) => Array<string>(count).fill("a@x");
  const strangers = (count: number) => Array.from({ length: count }, (_, index) => `${index}@x`);

  test("are all admitted where they are right: ten of a pair at a time, a hundred of an address", async () => {
    expect(await together(createSignInThrottle(), pair(60), false)).toEqual({ admitted: 60, most: 10 });
    expect(await together(createSignInThrottle(), strangers(190), false)).toEqual({
      admitted: 190,
      most: 100,
    });
  });

  test("are ten of a pair and a hundred of an address where they are wrong", async () => {
    expect(await together(createSignInThrottle(), pair(60), true)).toEqual({ admitted: 10, most: 10 });
    expect(await together(createSignInThrottle(), strangers(190), true)).toEqual({
      admitted: 100,
      most: 100,
    });
  });

  test("wait in a queue of limited length", async () => {
    expect(await together(createSignInThrottle(), pair(300), false)).toEqual({ admitted: 110, most: 10 });
  });

  test("an attempt that waits continues as soon as another one succeeds, and is refused when the last one fails", async () => {
    const throttle = createSignInThrottle();
    const begin = () => throttle.begin("a@x", "192.0.2.1", () => 0);
    const [first, ...others] = await Promise.all(Array.from({ length: 10 }, begin));
    const next = begin();
    first?.(false);
    const end = await next;
    expect(end).toBeFunction();
    const last = begin();
    for (const other of [...others, end]) other?.(true);
    expect(await last).toBeNull();
  });
});
