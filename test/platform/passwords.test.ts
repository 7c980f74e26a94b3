import { afterEach, expect, spyOn, test } from "bun:test";
import { createPasswords } from "../../src/platform/passwords.ts";

const hash = spyOn(Bun.password, "hash");
const verify = spyOn(Bun.password, "verify");
afterEach(() => {
  hash.mockRestore();
  verify.mockRestore();
});

test("nothing is hashed at the start; where there is no hash, one of the same cost is compared", async () => {
  const passwords = createPasswords();
  expect(hash).not.toHaveBeenCalled();
  expect(await passwords.verify("secret", null)).toBe(false);
  expect(hash).not.toHaveBeenCalled();
  const real = await passwords.hash("secret");
  expect(await passwords.verify("secret", real)).toBe(true);
  expect(await passwords.verify("other", real)).toBe(false);

  // The algorithm, its version and cost, the salt's length and the digest's decide the time it takes.
  const shapeOf = (text: unknown) =>
    String(text).replace(/\$([^$]+)\$([^$]+)$/, (_, salt, digest) => ` ${salt.length} ${digest.length}`);
  const [decoy] = verify.mock.calls;
  expect(shapeOf(decoy?.[1])).toBe(shapeOf(real));
  expect(shapeOf(real)).toStartWith("$argon2id$v=19$m=19456,");
});

test("a hash is outdated where it has less memory or fewer passes than today's", async () => {
  const passwords = createPasswords();
  expect(passwords.isOutdated(await passwords.hash("secret"))).toBe(false);
  const hashed = (memoryCost: number, timeCost: number) =>
    Bun.password.hash("secret", { algorithm: "argon2id", memoryCost, timeCost });
  for (const [memoryCost, timeCost, isOutdated] of [
    [12_288, 3, true],
    [19_456, 1, true],
    [19_456, 3, false],
    [47_104, 2, false],
  ] as const) {
    expect(passwords.isOutdated(await hashed(memoryCost, timeCost))).toBe(isOutdated);
  }
});
