import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/core/time.ts";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { recoverOverdueChecks } from "../../src/jobs/recover.ts";
import { deliverWebhooks } from "../../src/jobs/webhooks.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { FAKETIME, fakeTimeBy, writeOffset } from "../crash/clock.ts";
import { createProgram, type Program, type Server, SOURCE } from "../crash/program.ts";
import { createClient, type Json } from "../support/client.ts";
import { databaseSettings } from "../support/database-settings.ts";
import { ENGINE } from "../support/engine.ts";
import { makeDatabase, removeLedgerFolder } from "../support/new-ledger.ts";
import { noFault } from "../support/no-fault.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";

const embedded = onlyEmbedded(import.meta.path);

/** A clock that jumps, forwards or back: what is due happens once, and nothing waits until the old time comes again. */

const SOURCE_URL = { source_url: "http://source.example/" };

describe("when the clock jumps", () => {
  let service: ShellService;
  let home: TestOrganisation;
  const sent: string[] = [];
  let receiverIsUp: boolean;
  beforeEach(async () => {
    receiverIsUp = true;
    sent.length = 0;
    service = startTestShell({
      rateLimits: { read: 1_000, write: 8, bench: 1_000 },
      sendWebhook: async ({ headers }) => {
        sent.push(headers["Service-Attempt"] ?? "");
        return { code: receiverIsUp ? 204 : 500, responseStart: "", durationMs: 1 };
      },
    });
    home = await service.organisation();
  });
  afterEach(() => service.close());

  const jump = (ms: number) => {
    service.clock.now += ms;
  };
  const read = async (id: string) => (await service.get(`/v1/warrants/${id}`, { as: home.live.as })).body;
  const verify = (id: string) => service.post(`/v1/warrants/${id}/verify`, SOURCE_URL, { as: home.live.as });
  const sweep = () => sweepDeadlines(service.ctx, noFault);

  test("an hour forwards, a deadline that has passed expires, once; back again, it stays expired", async () => {
    const { id } = await service.opened(home, { deadline: service.timeIn(30 * MINUTE_MS) });
    jump(HOUR_MS);
    expect([await sweep(), await sweep()]).toEqual([1, 0]);
    const expired = await read(id);
    expect(expired).toMatchObject({ state: "expired", version: 2 });
    jump(-HOUR_MS);
    expect(await sweep()).toBe(0);
    expect((await verify(id)).code).toBe("illegal_transition");
    jump(2 * HOUR_MS);
    expect(await sweep()).toBe(0);
    expect(await read(id)).toEqual(expired);
    expect(service.balance(home)).toEqual({ available: 1_000_000n, held: 0n, paid: 0n });
    expect(service.allRows(home).trace).toHaveLength(2);
  });

  test("a day back, held warrants stay held, and move as before", async () => {
    const [held, checked] = [await service.opened(home), await service.opened(home)];
    jump(-DAY_MS);
    expect(await sweep()).toBe(0);
    expect((await verify(checked.id)).body).toMatchObject({ state: "released", version: 3 });
    const { as } = home.people.operator;
    expect((await service.post(`/v1/warrants/${held.id}/refund`, undefined, { as })).status).toBe(200);
    const trace = await service.get(`/v1/warrants/${checked.id}/trace`, { as });
    expect(trace.body.data.map(({ to }: { to: string }) => to)).toEqual(["held", "verifying", "released"]);
    expect((await service.get(`/t/${checked.id}`)).status).toBe(200);
    expect(service.balance(home)).toEqual({ available: 999_900n, held: 0n, paid: 100n });
  });

  test("a day back, ids still rise: what is opened later is listed as newer", async () => {
    const before = await service.opened(home);
    jump(-DAY_MS);
    const after = await service.opened(home, { deadline: service.timeIn(HOUR_MS) });
    const listed = await service.get("/v1/warrants?sort=created", { as: home.live.as });
    expect(listed.body.data.map(({ id }: { id: string }) => id)).toEqual([after.id, before.id]);
    expect(after.id > before.id).toBeTrue();
  });

  test("a day back, deadlines are judged by the clock's present time", async () => {
    const { id } = await service.opened(home);
    jump(-DAY_MS);
    jump(DAY_MS + HOUR_MS);
    expect([await sweep(), (await read(id)).state]).toEqual([1, "expired"]);
  });

  test("a day back, a check that was left behind is undone by the next run, not a day later", async () => {
    const { id } = await service.opened(home);
    const late = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const { fetchEvidence } = service.ctx;
    Object.assign(service.ctx, {
      fetchEvidence: async (...asked: Parameters<typeof fetchEvidence>) => {
        arrived.resolve();
        await late.promise;
        return fetchEvidence(...asked);
      },
    });
    const checking = verify(id);
    await arrived.promise;
    Object.assign(service.ctx, { fetchEvidence });
    // A correction of one second interrupts no check.
    jump(-SECOND_MS);
    expect(await recoverOverdueChecks(service.ctx, () => {})).toBe(0);
    jump(-DAY_MS);
    expect(await recoverOverdueChecks(service.ctx, () => {})).toBe(1);
    expect(await read(id)).toMatchObject({ state: "held", version: 3, settled_at: null });
    const verified = await verify(id);
    expect(verified.body).toMatchObject({ state: "released", version: 5 });
    // The interrupted check ends at last, and decides nothing.
    late.resolve();
    expect((await checking).code).toBe("version_conflict");
    expect(await read(id)).toMatchObject({ state: "released", version: 5 });
  });

  test("a day back, a delivery that waits for its next attempt has it at once", async () => {
    must(
      await createWebhook(service.ctx, MACHINE, {
        organisation_id: home.id,
        mode: "live",
        url: "http://receiver.example/",
      }),
    );
    const deliver = async () => {
      await deliverWebhooks(service.ctx, (error) => {
        throw error;
      });
      await Promise.all(service.ctx.deliverySlots.underWay());
      return sent.join(" ");
    };
    receiverIsUp = false;
    await service.opened(home);
    for (const [wait, attempts] of [
      [0, "1"],
      [SECOND_MS, "1 2"],
      [5 * SECOND_MS, "1 2 3"],
    ] as const) {
      jump(wait);
      expect(await deliver()).toBe(attempts);
    }
    receiverIsUp = true;
    jump(-DAY_MS);
    expect(await deliver()).toBe("1 2 3 4");
    expect(service.allRows(home).webhook_deliveries).toMatchObject([{ status: "delivered", attempts: 4n }]);
  });

  test("sessions and sign-ins that had expired by the wrong time continue by the right time", async () => {
    const agent = await home.addAgent();
    must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000" }));
    const body = () => service.body({ agent_id: agent.id, deadline: service.timeIn(HOUR_MS) });
    const open = () => service.post("/v1/warrants", body(), { as: agent.as });
    const whoAmI = () => service.get("/auth/session", { as: home.people.viewer.as });
    jump(8 * DAY_MS);
    expect([(await open()).code, (await whoAmI()).code]).toEqual(["session_expired", "not_authenticated"]);
    jump(-8 * DAY_MS);
    expect([(await open()).status, (await whoAmI()).status]).toEqual([201, 200]);
  });

  test("a limit holds for its window only, whether the clock leaves it forwards or back", async () => {
    const open = () => service.post("/v1/warrants", {}, { as: home.live.as });
    const signIn = () =>
      service.post("/auth/session", { email: home.people.viewer.email, password: "wrong" });
    const exhaust = async (send: typeof open) => {
      for (let count = 0; count < 20; count++) {
        if ((await send()).status === 429) return;
      }
      throw new Error("there is no limit");
    };
    for (const ms of [-DAY_MS, HOUR_MS]) {
      await exhaust(open);
      await exhaust(signIn);
      jump(ms);
      expect([(await open()).status, (await signIn()).status]).toEqual([400, 401]);
    }
  });
});

const TEST_MS = 120_000;

/** An organisation with a balance, as options of commands name it, and the key of its agent. */
async function buyerOf({ command }: Program) {
  const { organisation } = await command(
    ...["organisations", "create", "--name", "Clock", "--owner-email", "owner@example.com"],
    ...["--owner-password", "correct horse battery staple"],
  );
  const account = ["--organisation", organisation.id, "--mode", "live"];
  const agent = await command("agents", "create", ...account, "--name", "buyer");
  const { secret } = await command("keys", "create", "--agent", agent.id);
  await command("balances", "fund", ...account, "--amount", "1000");
  return { account, secret };
}

/** Speaks to the server that runs now, with an agent's key. */
function callerOf(server: () => Server, secret: string) {
  const client = () =>
    createClient(fetch, server().url, `http://localhost:${new URL(server().url).port}/docs`);
  const as = { authorization: `Bearer ${secret}` };
  return {
    client,
    as,
    /** Opens a warrant whose deadline is so far ahead by the right time. */
    async open(aheadMs: number): Promise<Json> {
      const deadline = new Date(Date.now() + aheadMs).toISOString();
      const spec = { clauses: [{ kind: "http.status", equals: 200 }] };
      const body = { amount: "100", payee: "acme", deadline, spec };
      const reply = await client().post("/v1/warrants", body, { as });
      expect(reply.status).toBe(201);
      return reply.body;
    },
    read: async (id: string): Promise<Json> => (await client().get(`/v1/warrants/${id}`, { as })).body,
    /** What the server says of its clock. */
    async clock() {
      const { checks }: Json = await fetch(`${server().url}/readyz`).then((response) => response.json());
      return checks.find(({ name }: Json) => name === "clock").message;
    },
  };
}

embedded.describe.skipIf(!existsSync(FAKETIME))(
  "a server whose machine's clock jumps (Debian's libfaketime)",
  () => {
    let folder: string;
    let program: Program;
    const jumpTo = (offset: string) => writeOffset(join(folder, "offset"), offset);
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "holdfast-clock-"));
      mkdirSync(join(folder, "data"));
      jumpTo("+0");
      program = createProgram(SOURCE, folder, fakeTimeBy(join(folder, "offset")));
    });
    afterEach(async () => {
      await program.killAll();
      rmSync(folder, { recursive: true, force: true });
    });

    test(
      "waits with deadlines until it is restarted, expires once what the time says, serves on, and starts again a day earlier",
      async () => {
        const { account, secret } = await buyerOf(program);
        let server = await program.serve();
        const { client, as, open, read, clock } = callerOf(() => server, secret);
        const short = await open(HOUR_MS / 2);
        const long = await open(2 * HOUR_MS);

        expect(await clock()).toBeNull();
        jumpTo("+1h");
        expect(await clock()).toMatch(
          /^The clock has jumped 3(600|599) s forwards since the service started: /,
        );
        // Longer than the time between two sweeps.
        await Bun.sleep(1_200);
        expect((await read(short.id)).state).toBe("held");
        await server.kill();
        server = await program.serve();
        expect(await clock()).toBeNull();
        await until("it has expired", async () => (await read(short.id)).state !== "held");
        const expired = await read(short.id);
        expect(expired).toMatchObject({ state: "expired", version: 2 });
        expect(Date.parse(expired.settled_at) - Date.now()).toBeGreaterThan(HOUR_MS / 2);

        jumpTo("-1d");
        expect(await clock()).toMatch(
          /^The clock is \d{5} s behind the ledger's last commit and has jumped \d{5} s back since the service started: /,
        );
        const third = await open(HOUR_MS);
        expect(third.id > long.id).toBeTrue();
        // The times of records never go back.
        expect(third.opened_at >= expired.settled_at).toBeTrue();
        await server.kill();
        server = await program.serve();
        expect(await clock()).toMatch(/^The clock is \d{5} s behind the ledger's last commit: /);
        const fourth = await open(HOUR_MS);
        expect(fourth.id > third.id).toBeTrue();
        const verified = await client().post(
          `/v1/warrants/${long.id}/verify`,
          { source_url: `${server.url}/healthz` },
          { as },
        );
        // The service's own listener is refused as a source. The check ran all the same, and its policy decided.
        expect([verified.status, verified.body.state]).toEqual([200, "escalated"]);
        expect(await read(short.id)).toEqual(expired);
        expect((await program.command("balances", "show", ...account)).balances).toEqual([
          { asset: "USDC", available: "700", held: "300", paid: "0" },
        ]);
        expect((await program.command("audit")).problems).toEqual([]);
        expect(program.faults()).toEqual([]);
      },
      TEST_MS,
    );
  },
);

describe.skipIf(ENGINE === "embedded" || !existsSync(FAKETIME))(
  "a server on PostgreSQL, when the clock of its machine jumps, and not the database's",
  () => {
    test(
      "waits with deadlines, is not started again by that clock, and goes on by the right one",
      async () => {
        const folder = mkdtempSync(join(tmpdir(), "holdfast-clock-"));
        const jumpTo = (offset: string) => writeOffset(join(folder, "offset"), offset);
        jumpTo("+0");
        makeDatabase(folder);
        const settings = { ...fakeTimeBy(join(folder, "offset")), ...databaseSettings(folder) };
        const program = createProgram(SOURCE, folder, settings);
        try {
          const { account, secret } = await buyerOf(program);
          const server = await program.serve();
          const { open, read, clock } = callerOf(() => server, secret);
          const held = await open(HOUR_MS / 2);
          expect(await clock()).toBeNull();
          jumpTo("+1h");
          expect(await clock()).toMatch(/^The clock has jumped 3(600|599) s forwards/);
          // Longer than the time between two sweeps.
          await Bun.sleep(1_200);
          expect(await read(held.id)).toMatchObject({ state: "held", version: 1 });
          // Neither another server nor a command.
          await expect(program.serve()).rejects.toThrow("the server ended before it listened");
          await expect(program.command("balances", "show", ...account)).rejects.toThrow(/clocks .* apart/);

          jumpTo("+0");
          expect(await clock()).toBeNull();
          const soon = await open(2_000);
          await until("it has expired", async () => (await read(soon.id)).state === "expired");
          expect(await read(held.id)).toMatchObject({ state: "held", version: 1 });
          expect((await program.command("balances", "show", ...account)).balances).toEqual([
            { asset: "USDC", available: "900", held: "100", paid: "0" },
          ]);
          expect((await program.command("audit")).problems).toEqual([]);
        } finally {
          await program.killAll();
          removeLedgerFolder(folder);
        }
      },
      TEST_MS,
    );
  },
);
