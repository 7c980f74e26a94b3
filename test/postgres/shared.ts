/**
 * What instances that share a ledger remember together: one table of cases for an instance that remembers alone, in memory, and for
 * two that remember together, in PostgreSQL, each in turn.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createSubmissions } from "../../src/console/submissions.ts";
import { isRefusal, refuse, UnsharedFault } from "../../src/core/errors.ts";
import { WINDOW_MS } from "../../src/core/rate.ts";
import { createSharedRateCounters } from "../../src/http/rate-exchange.ts";
import { createShell } from "../../src/http/shell.ts";
import { createVault } from "../../src/platform/vault.ts";
import { offerSetUp, setUp } from "../../src/services/admin/set-up.ts";
import {
  type Asker,
  type Ceremony,
  createPendingChallenges,
  type PendingChallenges,
} from "../../src/services/auth/passkeys/challenges.ts";
import { createSharedChallenges } from "../../src/services/auth/passkeys/shared-challenges.ts";
import { signIn } from "../../src/services/auth/sign-in.ts";
import {
  createSharedStartLinks,
  createStartLinks,
  type StartLinks,
} from "../../src/services/auth/start-links.ts";
import {
  createSharedSignInThrottle,
  createSignInThrottle,
  type SignInThrottle,
  type Tried,
} from "../../src/services/auth/throttle.ts";
import type { After } from "../../src/services/auth/waiting-room.ts";
import { createIntake } from "../../src/services/messaging/intake.ts";
import { takeUpdate } from "../../src/services/messaging/updates.ts";
import { createPostgresSharedMemory } from "../../src/store/postgres/shared-memory.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import { createUpdates } from "../support/chats.ts";
import { OPEN_PASSWORDS } from "../support/cheap-passwords.ts";
import { type Client, callerAt, createClient } from "../support/client.ts";
import { quietSite } from "../support/console.ts";
import { createTestContext } from "../support/context.ts";
import { PASSWORD } from "../support/organisations.ts";
import { registrationOptions } from "../support/passkeys.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";

const TEST_MS = 120_000;
const MINUTE_MS = 60_000;
const TABLES = readFileSync(join(import.meta.dir, "../../migrations/postgres/0002_shared.sql"), "utf8");

setDefaultTimeout(TEST_MS);

let postgres: Postgres;
const { connectTo, newProxy, closing, closeAll } = createConnections(() => postgres.port);
beforeAll(async () => {
  postgres = await startPostgres();
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

const inTime: After = (ms, then) => {
  const timer = setTimeout(then, ms);
  return { cancel: () => clearTimeout(timer) };
};
const vault = createVault(new Uint8Array(32).fill(7));

async function newDatabase() {
  const url = await postgres.createDatabase();
  const sql = connectTo(url);
  await sql.unsafe(TABLES).simple();
  let instances = 0;
  const newMemory = (at = url, answerMsMax = 10_000) => {
    const memory = createPostgresSharedMemory({
      connect: () => connectTo(at, { max: 4 }),
      instance: `instance-${++instances}`,
      answerMsMax,
    });
    closing.push(memory.close);
    return memory;
  };
  const rows = async (): Promise<Record<string, number>> => {
    const [counts] = await sql`
      SELECT (SELECT count(*)::int4 FROM used_tokens) AS used_tokens, (SELECT count(*)::int4 FROM kept_values) AS kept_values,
        (SELECT count(*)::int4 FROM attempts) AS attempts, (SELECT count(*)::int4 FROM rate_counts) AS rate_counts`;
    return { ...counts };
  };
  /** Everything is so much older. */
  const age = async (ms: number) => {
    await sql`UPDATE used_tokens SET ends_at = ends_at - ${ms}`;
    await sql`UPDATE kept_values SET ends_at = ends_at - ${ms}`;
    await sql`UPDATE attempts SET ends_at = ends_at - ${ms}, under_way_until = under_way_until - ${ms}`;
    await sql`UPDATE rate_counts SET window_number = window_number - ${Math.floor(ms / MINUTE_MS)}`;
  };
  return { url, sql, newMemory, rows, age };
}

/** What two instances have of each kind. Alone, both are the same. */
type Two = {
  readonly throttles: readonly [SignInThrottle<void | Promise<void>>, SignInThrottle<void | Promise<void>>];
  readonly challenges: readonly [PendingChallenges, PendingChallenges];
  readonly links: readonly [StartLinks, StartLinks];
  /** Sends a form at one of them. */
  readonly sends: (index: 0 | 1, key: string, work: () => Promise<unknown>) => Promise<unknown>;
  now(): number;
  pass(ms: number): Promise<void>;
};

const MARKS = { isDone: (answer: unknown) => !isRefusal(answer), hasSecret: () => false };

async function alone(): Promise<Two> {
  const clock = { now: 1_000_000 };
  const throttle = createSignInThrottle({ after: inTime, secret: "test" });
  const challenges = createPendingChallenges();
  const links = createStartLinks(() => clock.now);
  const submissions = createSubmissions();
  return {
    throttles: [throttle, throttle],
    challenges: [challenges, challenges],
    links: [links, links],
    sends: (_, key, work) =>
      submissions.once("somebody", { key, fingerprint: "f", now: clock.now }, work as never, MARKS),
    now: () => clock.now,
    async pass(ms) {
      clock.now += ms;
    },
  };
}

async function together(): Promise<Two> {
  const { newMemory, age } = await newDatabase();
  const memories = [newMemory(), newMemory()] as const;
  const each = <Made>(make: (memory: (typeof memories)[number]) => Made) =>
    [make(memories[0]), make(memories[1])] as const;
  const submissions = each(() => createSubmissions());
  const clock = { now: 1_000_000 };
  return {
    throttles: each(({ attempts }) =>
      createSharedSignInThrottle({ after: inTime, secret: "test" }, attempts),
    ),
    challenges: each((memory) => createSharedChallenges(memory, vault)),
    links: each((memory) =>
      createSharedStartLinks(
        memory,
        createStartLinks(() => clock.now),
      ),
    ),
    sends: (index, key, work) =>
      submissions[index].once(
        "somebody",
        { key, fingerprint: "f", now: clock.now },
        work as never,
        MARKS,
        memories[index],
      ),
    now: () => clock.now,
    async pass(ms) {
      clock.now += ms;
      await age(ms);
    },
  };
}

const tried = (account: string | null, network: string, by: Tried["by"] = "password"): Tried => ({
  ...{ by, account, trusted: false, network },
});
const ADA: Asker = { kind: "person", id: "usr_ada" };
const REGISTRATION: Ceremony = { kind: "registration", userId: "usr_ada" };

const STARTS = [
  ["one instance, in memory", alone],
  ["two instances, in PostgreSQL", together],
] as const;
describe.each(STARTS)("%s", (_, start) => {
  /** Tries one after the other, at each instance in turn. Answers how many were admitted at once. */
  async function admitted(two: Two, tries: readonly Tried[], failed = true): Promise<number> {
    let count = 0;
    for (const [index, one] of tries.entries()) {
      const end = await two.throttles[index % 2 === 0 ? 0 : 1].begin(one, two.now);
      if (end) count += 1;
      await end?.(failed);
    }
    return count;
  }
  const strangersAt = (network: string, count: number, by?: Tried["by"]) =>
    Array.from({ length: count }, (_, index) => tried(by ? null : `${index}@x`, network, by));

  test("a network has a hundred failures, whichever instance counts them; by passkey it has others", async () => {
    const two = await start();
    expect(await admitted(two, strangersAt("192.0.2.1", 110))).toBe(100);
    for (const throttle of two.throttles) {
      const { limit, resetSeconds } = throttle.budgetOf({ by: "password", network: "192.0.2.1" }, two.now());
      expect([limit, resetSeconds > 880 && resetSeconds <= 900]).toEqual([100, true]);
    }
    expect(await admitted(two, strangersAt("192.0.2.1", 3, "passkey"))).toBe(3);
    await two.pass(15 * MINUTE_MS);
    expect(await admitted(two, strangersAt("192.0.2.1", 3))).toBe(3);
  });

  test("an account waits after ten failures, whichever instance counts them, until they are forgiven or an hour old", async () => {
    const two = await start();
    const ten = Array.from({ length: 10 }, (_, index) => tried("a@x", `198.51.100.${index}`));
    const waits = async (index: 0 | 1): Promise<boolean> => {
      const begun = two.throttles[index].begin(tried("a@x", "192.0.2.1"), two.now);
      const first = await Promise.race([begun, Bun.sleep(600).then(() => "waits" as const)]);
      await (await begun)?.(false);
      return first === "waits";
    };
    for (const [renew, index] of [
      [async () => two.throttles[1].forgive("a@x", two.now()), 0],
      [() => two.pass(60 * MINUTE_MS), 1],
    ] as const) {
      expect(await admitted(two, ten)).toBe(10);
      expect(await waits(index)).toBeTrue();
      await renew();
      expect(await waits(index)).toBeFalse();
    }
  });

  test("of tries at once no more begin than may fail, and those that succeed make room", async () => {
    const two = await start();
    const begun: ((failed: boolean) => unknown)[] = [];
    const all = Array.from({ length: 30 }, (_, index) =>
      two.throttles[index % 2 === 0 ? 0 : 1]
        .begin(tried("a@x", `198.51.100.${index}`), two.now)
        .then((end) => void (end && begun.push(end))),
    );
    await until("ten have begun", () => begun.length >= 10);
    await Bun.sleep(300);
    expect(begun).toHaveLength(10);
    for (let ended = 0; ended < 30; ended++) {
      await until("another one has begun", () => begun.length > ended);
      await begun[ended]!(false);
    }
    await Promise.all(all);
    expect(begun).toHaveLength(30);
  });

  test("a challenge is taken once, at either instance, within 120 seconds", async () => {
    const two = await start();
    const [first, second] = two.challenges;
    for (const challenge of ["a", "b"]) await first.add(challenge, ADA, REGISTRATION, two.now());
    expect(await second.take("a", two.now())).toEqual(REGISTRATION);
    for (const either of two.challenges) expect(await either.take("a", two.now())).toBeNull();
    await two.pass(120_000);
    expect(await second.take("b", two.now())).toBeNull();
    expect(await first.take("never", two.now())).toBeNull();
  });

  test("a person has ten challenges at a time", async () => {
    const two = await start();
    for (let count = 0; count <= 10; count++) {
      await two.challenges[count % 2 === 0 ? 0 : 1].add(`${count}`, ADA, REGISTRATION, two.now());
      await two.pass(10);
    }
    expect(await two.challenges[1].take("0", two.now())).toBeNull();
    for (let count = 1; count <= 10; count++) {
      expect(await two.challenges[0].take(`${count}`, two.now())).toEqual(REGISTRATION);
    }
  });

  test("the challenge of a sign-in is good for one, at either instance, within 120 seconds", async () => {
    const two = await start();
    const [first, second] = two.challenges;
    /** As a sign-in does it, whose answer is right. */
    const signsIn = async (at: PendingChallenges, challenge: string) =>
      (await at.take(challenge, two.now())) !== null && (await at.useForSignIn(challenge)) === true;
    const challenge = first.forSignIn("bm9uY2U", "192.0.2.1", two.now());
    const late = first.forSignIn("bGF0ZQ", "192.0.2.1", two.now());
    expect(await second.take("bm9uY2U2", two.now())).toBeNull();
    expect(await signsIn(second, challenge)).toBeTrue();
    expect([await signsIn(first, challenge), await signsIn(second, challenge)]).toEqual([false, false]);
    await two.pass(120_000);
    expect(await signsIn(first, late)).toBeFalse();
  });

  test("a link that was offered is used once, at either instance, within 30 minutes", async () => {
    const two = await start();
    const [first, second] = two.links;
    const use = (links: StartLinks, token: string, kind: "set-up" | "sign-in" = "set-up") =>
      links.use(kind, token, async ({ userId }) => ({ userId }));
    expect(await first.offer({ kind: "set-up", userId: null }, "a")).toBeTrue();
    expect([await use(second, "b"), await use(second, "a", "sign-in")]).toEqual([null, null]);
    const refusal = refuse("validation_failed", "no");
    expect(await second.use("set-up", "a", async () => refusal)).toBe(refusal);
    await expect(second.use("set-up", "a", () => Promise.reject(new Error("a full disk")))).rejects.toThrow();
    await first.use("set-up", "a", async () => {
      // Nobody else uses it meanwhile.
      expect(await use(second, "a")).toBeNull();
      return refusal;
    });
    await two.pass(29 * MINUTE_MS);
    expect(await use(second, "a")).toEqual({ userId: null });
    for (const links of two.links) expect(await use(links, "a")).toBeNull();
    await two.pass(2 * MINUTE_MS);
    expect(await second.offer({ kind: "set-up", userId: "usr_1" }, "c")).toBeTrue();
    expect(await use(first, "c")).toEqual({ userId: "usr_1" });
    await two.pass(31 * MINUTE_MS);
    expect(await first.offer({ kind: "set-up", userId: null }, "d")).toBeTrue();
    await two.pass(30 * MINUTE_MS);
    expect(await use(second, "d")).toBeNull();
  });

  test("a form that was sent does one thing, whichever instance the second click reaches; one that was refused may be sent again", async () => {
    const two = await start();
    let done = 0;
    const work = async () => ({ done: ++done });
    await Promise.all(([0, 1, 0, 1] as const).map((index) => two.sends(index, "key", work)));
    expect(done).toBe(1);
    expect(await two.sends(0, "refused", async () => refuse("validation_failed", "no"))).toMatchObject({
      refused: "validation_failed",
    });
    await two.sends(1, "refused", work);
    expect(done).toBe(2);
  });
});

describe("over HTTP, at two instances of one ledger", () => {
  /** What is said to have happened is looked for at the other one. */
  async function startTwo() {
    const { newMemory, rows } = await newDatabase();
    const remembered = () => {
      const shared = newMemory();
      return {
        shared,
        passkeyChallenges: createSharedChallenges(shared, vault),
        startLinks: createSharedStartLinks(
          shared,
          createStartLinks(() => 0),
        ),
        signInThrottle: createSharedSignInThrottle({ after: inTime, secret: "test" }, shared.attempts),
      };
    };
    const first = startTestShell({ passwords: OPEN_PASSWORDS, ...remembered() });
    const ctx = createTestContext({ passwords: OPEN_PASSWORDS, ...remembered() }, first.folder);
    ctx.clock.now = first.clock.now;
    const options = {
      docsUrl: "https://docs.example",
      rateLimits: { read: 10_000, write: 10_000, bench: 10_000 },
      trustedProxies: [],
    };
    const shell = createShell(ctx, {
      ...options,
      site: quietSite(),
      onFault: (error) => console.error(error),
    });
    const second = createClient((request) => shell(request, () => "192.0.2.1"), first.url, options.docsUrl);
    return {
      ...{ first, second, ctx, rows },
      async close() {
        await ctx.store.close();
        await first.close();
      },
    };
  }

  test("a passkey is registered, signs in and signs a decision, each begun at one and ended at the other", async () => {
    const { first, second, close, rows } = await startTwo();
    const home = await first.organisation();
    const person = home.people.operator;
    const authenticator = createAuthenticator();
    const options = await registrationOptions(first, person);
    const response = authenticator.create(options.body);
    const registers = (at: Client) =>
      at.post("/auth/passkeys", { name: "Laptop", response }, { as: person.as, key: null });
    expect((await registers(second)).status).toBe(201);
    expect((await registers(first)).status).toBe(400);
    const [credential] = authenticator.credentials;

    const before = await rows();
    const asked = await second.post("/auth/passkey/sign-in/options", undefined, { key: null });
    const signs = (at: Client) =>
      at.post(
        "/auth/passkey/sign-in",
        { response: authenticator.get(asked.body, credential!), mode: "live" },
        { key: null },
      );
    const wrong = await first.post(
      "/auth/passkey/sign-in",
      { response: authenticator.get(asked.body, credential!, { origin: "https://elsewhere.example" }) },
      { key: null },
    );
    expect([wrong.status, (await rows()).used_tokens]).toEqual([401, before.used_tokens]);
    expect([(await signs(first)).status, (await signs(second)).status, (await signs(first)).status]).toEqual([
      201, 401, 401,
    ]);

    const warrant = await first.opened(home);
    const decision = { warrant_id: warrant.id, version: warrant.version, decision: "release" };
    const challenge = await first.post("/auth/passkey/challenge", decision, { as: person.as, key: null });
    const signed = { response: authenticator.get(challenge.body, credential!) };
    const approves = (at: Client) => at.post("/auth/passkey/assertion", signed, { as: person.as, key: null });
    expect([(await approves(second)).status, (await approves(first)).status]).toEqual([201, 400]);
    await close();
  });

  test("failed sign-ins of a network count at both", async () => {
    const { first, second, close } = await startTwo();
    const guess = async (at: Client, index: number) =>
      (await at.post("/auth/session", { email: `${index}@example.com`, password: "x" }, { key: null }))
        .status;
    for (let index = 0; index < 100; index++)
      expect(await guess(index % 2 === 0 ? first : second, index)).toBe(401);
    expect([await guess(first, 100), await guess(second, 101)]).toEqual([429, 429]);
    await close();
  });

  test("one prints the link of the first run, and the other takes it", async () => {
    const { first, ctx, close } = await startTwo();
    const printed = await Promise.all([offerSetUp(first.ctx), offerSetUp(ctx)]);
    const [link = null, ...others] = printed.filter((one) => one !== null);
    expect(others).toEqual([]);
    const other = printed[0] === null ? first.ctx : ctx;
    const owner = {
      name: "Acme",
      owner_email: "ada@example.com",
      owner_name: "Ada",
      owner_password: PASSWORD,
    };
    const used = { ...owner, token: link!.split("#")[1]! };
    const made = await setUp(other, used, callerAt("192.0.2.1"));
    expect(isRefusal(made)).toBeFalse();
    const notAlone = { ...other, instances: { ...other.instances, alone: false } };
    expect(await setUp(notAlone, used, callerAt("192.0.2.1"))).toMatchObject({
      message: expect.stringContaining("The log of one of the instances has it. Restart one when"),
    });
    await close();
  });

  test("an update of the bot that is sent again to the other is worked on once", async () => {
    const { first, ctx, close } = await startTwo();
    const works: string[] = [];
    const ignored: string[] = [];
    const messaging = () => ({
      bot: {
        send: async (chatId: string) => {
          works.push(chatId);
          return { outcome: "delivered" as const };
        },
      } as never,
      hears: true,
      intake: createIntake(
        () => 0,
        (error) => console.error(error),
      ),
      onIgnored: (why: string) => void ignored.push(why),
    });
    for (const at of [first.ctx, ctx]) {
      const bot = messaging();
      await takeUpdate({ ...at, messaging: bot }, JSON.stringify(createUpdates().message(1, "hello")));
      await Promise.all(bot.intake.underWay());
    }
    expect([works, ignored]).toEqual([["1"], ["known already"]]);
    await close();
  });

  test("where the database cannot be reached nobody signs in, and the refusal says so", async () => {
    const { ctx, close } = await startTwo();
    const down = () => Promise.reject(new UnsharedFault("down"));
    const begun = { read: async () => new Map(), begin: async () => new Map(), end: down, forgive: down };
    for (const attempts of [{ ...begun, read: down }, { ...begun, begin: down }, begun]) {
      const signInThrottle = createSharedSignInThrottle({ after: inTime, secret: "test" }, attempts);
      const at = { ...ctx, signInThrottle };
      const wrong = await signIn(
        at,
        { email: "nobody@example.com", password: "wrong" },
        callerAt("192.0.2.1"),
      );
      expect(isRefusal(wrong) && [wrong.refused, wrong.message.includes("all instances")]).toEqual([
        "rate_limit_exceeded",
        true,
      ]);
    }
    const shared = { keep: down, take: down, useOnce: down, release: down };
    const challenges = createSharedChallenges(shared, vault);
    for (const answer of [
      await challenges.add("a", ADA, REGISTRATION, 0),
      await challenges.take("a", 0),
      await challenges.useForSignIn("a"),
      await createSharedStartLinks(
        shared,
        createStartLinks(() => 0),
      ).use("set-up", "a", async () => "used"),
      await createSubmissions().once(
        "somebody",
        { key: "k", fingerprint: "f", now: 0 },
        async () => "done",
        MARKS,
        shared as never,
      ),
    ])
      expect(answer).toMatchObject({ refused: "rate_limit_exceeded" });
    await close();
  });
});

describe("in PostgreSQL", () => {
  test("of many at once one uses a token, and one takes a value", async () => {
    const { newMemory } = await newDatabase();
    const memories = [newMemory(), newMemory()];
    await memories[0]!.keep({ token: "value", value: "{}", owner: "owner", most: 1 }, 60_000);
    const many = Array.from({ length: 40 }, (_, index) => memories[index % 2]!);
    const used = await Promise.all(many.map((memory) => memory.useOnce("token", 60_000)));
    const taken = await Promise.all(many.map((memory) => memory.take("value")));
    expect([used.filter(Boolean).length, taken.filter((value) => value !== null).length]).toEqual([1, 1]);
    await memories[1]!.release("token");
    expect(await memories[0]!.useOnce("token", 60_000)).toBeTrue();
  });

  test("of instances that start at once one offers a link", async () => {
    const { newMemory } = await newDatabase();
    const links = Array.from({ length: 4 }, () =>
      createSharedStartLinks(
        newMemory(),
        createStartLinks(() => 0),
      ),
    );
    const offered = await Promise.all(
      links.map((one, index) => one.offer({ kind: "set-up", userId: null }, `token ${index}`)),
    );
    expect(offered.filter(Boolean)).toHaveLength(1);
    const uses = links.map((_, index) => links[0]!.use("set-up", `token ${index}`, async () => "used"));
    expect((await Promise.all(uses)).map((used) => used === "used")).toEqual(offered);
  });

  test("a stranger who begins sign-ins and answers them wrongly writes nothing", async () => {
    const { newMemory, rows } = await newDatabase();
    const challenges = createSharedChallenges(newMemory(), vault);
    const nobody = await rows();
    const challenge = challenges.forSignIn("bm9uY2U", "192.0.2.1", 0);
    expect(await challenges.take(challenge, 0)).toEqual({ kind: "signIn" });
    expect(await rows()).toEqual(nobody);
    // Another key, another time, another text.
    const other = createSharedChallenges(newMemory(), createVault(new Uint8Array(32).fill(8)));
    expect(await other.take(challenge, 0)).toBeNull();
    const [at, ...rest] = Buffer.from(challenge, "base64url").toString().split(".");
    const later = Buffer.from([Number(at) + 100_000, ...rest].join(".")).toString("base64url");
    expect(await challenges.take(later, 200_000)).toBeNull();
    // The clock of another instance may be a little behind, and not more.
    expect(await challenges.take(challenges.forSignIn("bm9uY2U", "", 5_000), 0)).not.toBeNull();
    expect(await challenges.take(challenges.forSignIn("bm9uY2U", "", 5_001), 0)).toBeNull();
  });

  test("nothing is left of tries that succeeded, and what an instance began that died is forgotten after a minute", async () => {
    const { newMemory, rows, age } = await newDatabase();
    const { attempts, forgetEnded } = newMemory();
    const counters = [{ key: "a", windowMs: 3_600_000 }];
    await attempts.begin(counters);
    await attempts.end(counters, false);
    expect((await attempts.read(["a"])).size).toBe(0);
    await attempts.begin(counters);
    expect((await attempts.read(["a"])).get("a")).toMatchObject({ failures: 0, underWay: 1 });
    await age(MINUTE_MS);
    expect((await attempts.read(["a"])).get("a")).toMatchObject({ failures: 0, underWay: 0 });
    // Its window begins anew.
    expect((await attempts.begin(counters)).get("a")).toEqual({
      failures: 0,
      underWay: 1,
      endsInMs: 3_600_000,
    });
    await attempts.end(counters, true);
    expect((await attempts.read(["a"])).get("a")).toMatchObject({ failures: 1, underWay: 0 });
    // What is forgiven while another try is under way is forgiven too.
    await attempts.begin(counters);
    await attempts.forgive("a");
    expect((await attempts.read(["a"])).get("a")).toMatchObject({ failures: 0, underWay: 1 });
    await attempts.end(counters, true);
    await age(3_600_000 + 2 * MINUTE_MS);
    await forgetEnded();
    expect((await rows()).attempts).toBe(0);
  });

  test("what has ended is deleted, some at a time, and nothing else", async () => {
    const { newMemory, rows, age, sql } = await newDatabase();
    const memory = newMemory();
    const fill = async (name: string) => {
      await memory.useOnce(name, 1_000);
      await memory.keep({ token: name, value: "{}", owner: name, most: 1 }, 1_000);
      await memory.attempts.end([{ key: name, windowMs: 1_000 }], true);
      await memory.exchangeCounts(Math.floor(Date.now() / MINUTE_MS), [{ caller: name, used: 1 }]);
    };
    await fill("old");
    await age(5 * MINUTE_MS);
    await fill("new");
    await memory.forgetEnded();
    expect(await rows()).toEqual({ used_tokens: 1, kept_values: 1, attempts: 1, rate_counts: 2 });
    await sql`INSERT INTO used_tokens SELECT sha256(n::text::bytea), 0 FROM generate_series(1, 10500) AS n`;
    await memory.forgetEnded();
    expect((await rows()).used_tokens).toBe(501);
  });

  test("tokens, e-mails and networks of tries are hashes", async () => {
    const { newMemory, sql } = await newDatabase();
    const memory = newMemory();
    await memory.useOnce("plain-token", 60_000);
    await memory.keep({ token: "plain-token", value: "{}", owner: "plain-owner", most: 1 }, 60_000);
    await memory.attempts.end([{ key: "account plain@example.com", windowMs: 60_000 }], true);
    const [row] = await sql`
      SELECT (SELECT string_agg(u::text, ' ') FROM used_tokens AS u) || (SELECT string_agg(k::text, ' ') FROM kept_values AS k) ||
        (SELECT string_agg(a::text, ' ') FROM attempts AS a) AS text`;
    expect(row.text).not.toContain(Buffer.from("plain").toString("hex"));
    expect(row.text).not.toContain("plain");
  });

  test("two instances hear of each other's callers", async () => {
    const { newMemory } = await newDatabase();
    const [one, other] = [newMemory(), newMemory()];
    const limits = { read: 80, write: 80, bench: 80 };
    const counters = [createSharedRateCounters(limits), createSharedRateCounters(limits)] as const;
    const caller = { kind: "account", id: "key_ada", live: true } as const;
    const now = 1_000 * WINDOW_MS;
    for (let time = 0; time < 50; time++) counters[0].take("read", caller, now);
    for (let time = 0; time < 20; time++) counters[1].take("read", caller, now);
    await counters[0].exchange(one.exchangeCounts, now);
    await counters[1].exchange(other.exchangeCounts, now);
    await counters[0].exchange(one.exchangeCounts, now);
    expect(counters.map((each) => each.peek("read", caller, now).remaining)).toEqual([10, 10]);
    expect(await one.exchangeCounts(1_000, [])).toEqual({
      used: new Map([["read account key_ada", 20]]),
      instances: 2,
    });
    expect(await one.exchangeCounts(1_002, [])).toEqual({ used: new Map(), instances: 1 });
  });

  test("where the database cannot be reached nothing is decided, in time, and it goes on after that", async () => {
    const { url, newMemory } = await newDatabase();
    const proxy = await newProxy();
    const memory = newMemory(through(proxy, url), 500);
    const throttle = createSharedSignInThrottle({ after: inTime, secret: "test" }, memory.attempts);
    const begin = () => throttle.begin(tried("a@x", "192.0.2.1"), () => 0);
    await (await begin())!(true);
    for (const breakIt of [() => proxy.hold("to server"), () => proxy.hold("to client"), proxy.drop]) {
      breakIt();
      const asked = performance.now();
      await expect(begin()).rejects.toThrow(UnsharedFault);
      await expect(memory.useOnce("token", 1_000)).rejects.toThrow(UnsharedFault);
      await expect(memory.exchangeCounts(1, [])).rejects.toThrow(UnsharedFault);
      expect(performance.now() - asked).toBeLessThan(5_000);
      proxy.pass();
      const end = await begin();
      await end!(false);
    }
    const [found] = (await memory.attempts.read(["account a@x"])).values();
    expect(found).toMatchObject({ failures: 1 });
  });
});
