/** argon2id, off the main thread: it takes some 85 ms (architecture.md, traps). */
const OPTIONS = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** Of no password, and written out: to hash one would cost every start 85 ms. Salt and digest are 32 bytes, as Bun's. */
const DECOY = `$argon2id$v=19$m=${OPTIONS.memoryCost},t=${OPTIONS.timeCost},p=1$${"A".repeat(43)}$${"A".repeat(43)}`;

export function createPasswords() {
  return {
    hash: (password: string): Promise<string> => Bun.password.hash(password, OPTIONS),
    async verify(password: string, hash: string | null): Promise<boolean> {
      // Without a hash the decoy is compared: the answer takes as long, and tells nobody who exists.
      const matches = await Bun.password.verify(password, hash ?? DECOY);
      return hash !== null && matches;
    },
  };
}
