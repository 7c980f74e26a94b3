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
