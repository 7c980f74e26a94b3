/** argon2id, off the main thread: it takes some 85 ms (architecture.md, traps). */
const OPTIONS = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

export function createPasswords() {
  // Where there is no hash to compare with, this one is: the answer takes as long, and tells nobody who exists.
  const decoy = Bun.password.hash(crypto.randomUUID(), OPTIONS);
  return {
    hash: (password: string): Promise<string> => Bun.password.hash(password, OPTIONS),
    async verify(password: string, hash: string | null): Promise<boolean> {
      const matches = await Bun.password.verify(password, hash ?? (await decoy));
      return hash !== null && matches;
    },
  };
}
