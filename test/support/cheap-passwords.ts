import type { Passwords } from "../../src/services/context.ts";

/**
 * Passwords of people whom a test creates: any will do, and argon2 for each of them would take most of a test's time. A server
 * reads the algorithm from the hash, so they sign in.
 */
export const cheapPasswords = (real: Passwords): Passwords => ({
  ...real,
  hash: (password) => Bun.password.hash(password, { algorithm: "bcrypt", cost: 4 }),
  weaknessOf: async () => null,
});

/** Passwords for a context without a server: a hash shows its password, and any will do. */
export const OPEN_PASSWORDS: Passwords = {
  hash: async (password) => `test:${password}`,
  verify: async (password, hash) => hash === `test:${password}`,
  isOutdated: () => false,
  weaknessOf: async () => null,
};
