import { createPasswordJudge } from "./password-judge.ts";

/**
 * OWASP's minimum for argon2id: 19 MiB, two passes, one lane. It takes 50 to 85 ms, off the main thread. The next
 * steps that were tried, 46 MiB and 64 MiB, take two and three times as long, and strangers may ask for it.
 */
const OPTIONS = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/**
 * A hash that no password has. It is a constant, since computing one takes 85 ms at every start. Salt and
 * digest have 32 bytes, as those of Bun.
 */
const DECOY = `$argon2id$v=19$m=${OPTIONS.memoryCost},t=${OPTIONS.timeCost},p=1$${"A".repeat(43)}$${"A".repeat(43)}`;

const COST = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),/;

export function createPasswords() {
  return {
    hash: (password: string): Promise<string> => Bun.password.hash(password, OPTIONS),
    async verify(password: string, hash: string | null): Promise<boolean> {
      // Without a hash the decoy is compared, which takes the same time. So the answer does not show whether
      // the person exists.
      const matches = await Bun.password.verify(password, hash ?? DECOY);
      return hash !== null && matches;
    },
    isOutdated(hash: string): boolean {
      const cost = COST.exec(hash);
      // Only argon2id was ever used here.
      if (!cost) return false;
      return Number(cost[1]) < OPTIONS.memoryCost || Number(cost[2]) < OPTIONS.timeCost;
    },
    weaknessOf: createPasswordJudge(),
  };
}
