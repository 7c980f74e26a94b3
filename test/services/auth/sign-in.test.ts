import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { removeUser } from "../../../src/services/admin/users.ts";
import { type SignedIn, signedInBy } from "../../../src/services/auth/callers.ts";
import { changePassword } from "../../../src/services/auth/password.ts";
import { signIn, signOut, signOutEverywhere } from "../../../src/services/auth/sign-in.ts";
import type { Store } from "../../../src/store/store.ts";
import { OPEN_PASSWORDS } from "../../support/cheap-passwords.ts";
import { callerAt } from "../../support/client.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must, type Stage } from "../../support/stage.ts";

/** What ends sign-ins also ends those that are just being made or renewed. */

const PASSWORD = "correct horse battery staple";
const HOUR_MS = 3_600_000;
const HERE = callerAt("192.0.2.1");

let ctx: TestContext;
let stage: Stage;
let email: string;
/** Runs once, while a password is compared. */
let meanwhile: () => Promise<unknown>;
const nothing = async () => {};

beforeEach(async () => {
  meanwhile = nothing;
  ctx = createTestContext({
    passwords: {
      ...OPEN_PASSWORDS,
      async verify(password, hash) {
        const run = meanwhile;
        meanwhile = nothing;
        await run();
        return hash === `test:${password}`;
      },
    },
  });
  stage = await createStage(ctx);
  email = ctx.reader.users.get(stage.operator.userId)?.email ?? "";
});
afterEach(() => ctx.close());

const signInAs = (password = PASSWORD) => signIn(ctx, { email, password }, HERE);
const signedIn = async (token: string): Promise<SignedIn> => {
  const found = await signedInBy(ctx, token);
  if (!found) throw new Error("not signed in");
  return found;
};

describe("a sign-in whose password was right when it was sent", () => {
  test("fails where the password was changed meanwhile", async () => {
    const { token } = must(await signInAs());
    const person = await signedIn(token);
    meanwhile = () =>
      changePassword(ctx, person, { current_password: PASSWORD, new_password: "another long one" }, HERE);
    expect(await signInAs()).toMatchObject({ refused: "not_authenticated" });
    expect(await signInAs("another long one")).toHaveProperty("token");
  });

  test("fails where the person was removed meanwhile", async () => {
    meanwhile = () => removeUser(ctx, MACHINE, { user_id: stage.operator.userId });
    expect(await signInAs()).toMatchObject({ refused: "not_authenticated" });
  });
});

describe("a hash that is easier to try passwords against than today's", () => {
  const OLD = `old:${PASSWORD}`;
  /** Runs once, while a password is hashed. */
  let whileHashing: () => Promise<unknown>;

  beforeEach(async () => {
    whileHashing = nothing;
    ctx = Object.assign(ctx, {
      passwords: {
        ...OPEN_PASSWORDS,
        async hash(password: string) {
          const run = whileHashing;
          whileHashing = nothing;
          await run();
          return OPEN_PASSWORDS.hash(password);
        },
        verify: async (password: string, hash: string | null) =>
          [`old:${password}`, `test:${password}`].includes(hash ?? ""),
        isOutdated: (hash: string) => hash.startsWith("old:"),
      },
    });
  });

  const keepOldHash = () =>
    ctx.store.execute({
      scope: stage.operator,
      needs: { user: stage.operator.userId },
      decide({ user }) {
        if (!user) throw new Error("no operator");
        const row = { ...user, passwordHash: OLD };
        return { answer: row, change: { put: [{ kind: "user", before: user, row }] } };
      },
    });
  const hashNow = () => ctx.reader.users.get(stage.operator.userId)?.passwordHash;

  test("is replaced at the next sign-in, and not by a wrong password", async () => {
    await keepOldHash();
    expect(await signInAs("wrong")).toMatchObject({ refused: "not_authenticated" });
    expect(hashNow()).toBe(OLD);
    must(await signInAs());
    expect(hashNow()).toBe(`test:${PASSWORD}`);
    whileHashing = () => Promise.reject(new Error("hashed again"));
    must(await signInAs());
  });

  test("is not put back over a password that was changed meanwhile", async () => {
    const person = await signedIn(must(await signInAs()).token);
    const user = must(await keepOldHash());
    const input = { current_password: PASSWORD, new_password: "another long one" };
    whileHashing = async () =>
      expect(await changePassword(ctx, { ...person, user }, input, callerAt("192.0.2.2"))).toBeNull();
    expect(await signInAs()).toMatchObject({ refused: "not_authenticated" });
    expect(hashNow()).toBe("test:another long one");
  });
});

describe("a use that would renew a sign-in", () => {
  /** A store whose reads are from before the sign-in ended, as those of another process may be. */
  function staleStore(store: Store, session: SignedIn["session"]): Store {
    return {
      ...store,
      read: (use) =>
        store.read((reader) =>
          use({ ...reader, authSessions: { ...reader.authSessions, byHash: async () => session } }),
        ),
    };
  }

  for (const [name, end] of [
    ["signed out", (person: SignedIn) => signOut(ctx, person, HERE)],
    ["signed out everywhere", (person: SignedIn) => signOutEverywhere(ctx, person.user, HERE)],
  ] as const) {
    test(`does not bring it back: ${name}`, async () => {
      const { token } = must(await signInAs());
      const { session } = await signedIn(token);
      ctx.clock.now += 2 * HOUR_MS;
      const late = { ...ctx, store: staleStore(ctx.store, session) };
      const person = await signedIn(token);
      ctx.clock.now += 2 * HOUR_MS;
      await end(person);
      expect(await signedInBy(late, token)).toBeNull();
      expect(await signedInBy(ctx, token)).toBeNull();
    });
  }
});

test("a removed person is signed out, and their token is unknown", async () => {
  const { token } = must(await signInAs());
  must(await removeUser(ctx, MACHINE, { user_id: stage.operator.userId }));
  expect(await signedInBy(ctx, token)).toBeNull();
  expect(await signInAs()).toMatchObject({ refused: "not_authenticated" });
  const hash = new Bun.CryptoHasher("sha256").update(token).digest("hex");
  expect(ctx.reader.authSessions.byHash(hash)?.expiresAt).toBe(ctx.now());
});
