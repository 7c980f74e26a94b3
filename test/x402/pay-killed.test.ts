/**
 * A SIGKILL at every phase of a purchase, on the disk, with official sellers and a chain; then a real server starts on what is left:
 * no second payment, nothing called refunded that was paid, nothing held that no job or person can end.
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Address, Hex } from "viem";
import { openForCommands } from "../../src/app/ledger.ts";
import { docsUrlOf } from "../../src/app/urls.ts";
import { readConfig } from "../../src/config.ts";
import type { Phase } from "../../src/core/x402/purchase.ts";
import { cheapPasswords } from "../support/cheap-passwords.ts";
import { type Client, type Credentials, createClient } from "../support/client.ts";
import { databaseSecrets, databaseSettings } from "../support/database-settings.ts";
import { openTestLedger } from "../support/ledger.ts";
import { newLedgerFolder, removeLedgerFolder, takePlacesOfKilled } from "../support/new-ledger.ts";
import { makeOrganisation, must, type TestOrganisation } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";
import { until } from "../support/until.ts";
import { FUNDS, SPEC } from "./buyer.ts";
import { type Chain, settingsOf, startChain, type Wallet } from "./chain.ts";
import { type Facilitator, startFacilitator } from "./facilitator.ts";
import { type Fault, type FaultySeller, startFaultySeller } from "./faulty-seller.ts";
import { PRICE } from "./official-seller.ts";

const COST = BigInt(PRICE);
const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const KILLED = join(import.meta.dir, "killed-process.ts");
const ALL_MS = 60_000;
const PAST_EXPIRY_SECONDS = 90;

type Kill = {
  /** After so many commits; 0: while the seller has the payment and does not answer. */
  readonly commits: number;
  readonly fault?: Fault;
  readonly left: Phase;
  /** Whether the chain says that the seller was paid before the kill. */
  readonly isPaid: boolean;
  /** What the key answers after the next start. */
  readonly answer: { readonly state: string; readonly code?: string };
  /** The state of the warrant once the payment is known, or once a person has released it. */
  readonly end: "released" | "refunded";
};

const UNKNOWN = { state: "escalated", code: "payment_unknown" };
const KILLS: Readonly<Record<string, Kill>> = {
  "while it asks": {
    commits: 1,
    left: "quoting",
    isPaid: false,
    answer: { state: "released" },
    end: "released",
  },
  "with the hold": {
    commits: 2,
    left: "held",
    isPaid: false,
    answer: { state: "refunded", code: "source_unreachable" },
    end: "refunded",
  },
  "with the signature": { commits: 3, left: "signed", isPaid: false, answer: UNKNOWN, end: "refunded" },
  "while the seller has the payment": {
    commits: 0,
    fault: "hangs-before",
    left: "signed",
    isPaid: false,
    answer: UNKNOWN,
    end: "refunded",
  },
  "while the seller is paid": {
    commits: 0,
    fault: "hangs-after",
    left: "signed",
    isPaid: true,
    answer: UNKNOWN,
    end: "released",
  },
  "with the answer": {
    commits: 4,
    left: "answered",
    isPaid: true,
    answer: { state: "released" },
    end: "released",
  },
  "while it is checked": {
    commits: 5,
    left: "answered",
    isPaid: true,
    answer: { state: "released" },
    end: "released",
  },
  "with its capsule": {
    commits: 6,
    left: "answered",
    isPaid: true,
    answer: { state: "released" },
    end: "released",
  },
  "once it is over": {
    commits: 7,
    left: "ended",
    isPaid: true,
    answer: { state: "released" },
    end: "released",
  },
};

for (const version of [1, 2] as const) {
  describe(`kill -9 while a purchase of version ${version} is made`, () => {
    const payTo: Address = `0x${String(version).padStart(40, "d")}`;
    let chain: Chain;
    let facilitator: Facilitator;
    let seller: FaultySeller;
    let wallet: Wallet;
    let machine: Machine;
    let client: Client;
    let home: TestOrganisation;
    let as: Credentials;
    let admin: Credentials;
    beforeAll(async () => {
      chain = await startChain();
      facilitator = await startFacilitator(chain);
      wallet = await chain.wallet(FUNDS);
      seller = await startFaultySeller({ version, chain, facilitator, payTo });
      machine = await openMachine(chain, wallet);
      const first = await machine.serve();
      home = await makeOrganisation(machine.ctx, first.client, FUNDS);
      ({ as } = await home.addAgent({ mode: "sandbox", failure_budget: 100 }));
      admin = await home.signIn(home.people.admin, "sandbox");
      const kills = Object.keys(KILLS);
      const isInTheServer = (what: string) => KILLS[what]?.commits === 0;
      await cutOffServer(first, kills.filter(isInTheServer));
      for (const what of kills) if (!isInTheServer(what)) await cutOffAfter(what);
    }, ALL_MS);
    afterAll(async () => {
      await machine?.close();
      await seller?.close();
      await facilitator?.close();
      await chain?.close();
    });

    /** The state of one purchase. */
    const urlOf = (what: string): string => {
      const url = new URL(seller.urlOf(KILLS[what]?.fault));
      url.searchParams.set("kill", what);
      return url.href;
    };
    const bodyOf = (what: string) => ({ url: urlOf(what), max_amount: PRICE, spec: SPEC });

    /** Buys in a process of its own, which ends after so many commits. */
    async function cutOffAfter(what: string): Promise<void> {
      const headers = { ...as, "content-type": "application/json", "idempotency-key": what };
      const child = machine.spawn([
        ...[KILLED, `${KILLS[what]?.commits}`, `${machine.ctx.baseUrl}/v1/x402/pay`],
        ...[JSON.stringify(headers), JSON.stringify(bodyOf(what))],
      ]);
      await child.exited;
      expect([what, child.signalCode]).toEqual([what, "SIGKILL"]);
    }

    /** Buys from a server, which is killed while the sellers have the payments. */
    async function cutOffServer(server: Server, kills: readonly string[]): Promise<void> {
      const bought: Promise<string>[] = [];
      for (const what of kills) {
        const left = seller.leavesOne();
        const reply = server.client.post("/v1/x402/pay", bodyOf(what), { as, key: what });
        bought.push(reply.then(() => "answered").catch(() => "cut off"));
        await left;
      }
      await server.kill();
      expect(await Promise.all(bought)).toEqual(kills.map(() => "cut off"));
    }

    const scope = () => ({ organisationId: home.id, mode: "sandbox" as const });
    const purchases = () => machine.ctx.reader.purchases.list(scope(), null, 100);
    const purchaseOf = (what: string) => purchases().find(({ url }) => url === urlOf(what));
    const stateOf = (what: string) =>
      machine.ctx.reader.warrants.find(purchaseOf(what)?.warrantId ?? "")?.state;
    const balance = () => machine.ctx.reader.balances.list(scope())[0]?.balance;
    const headers = () => seller.payments.map(({ header }) => header);

    test("each was cut off in its phase, and its money is where the chain says", async () => {
      for (const [what, { left, isPaid }] of Object.entries(KILLS)) {
        const purchase = purchaseOf(what);
        expect([what, purchase?.phase]).toEqual([what, left]);
        const { nonce, header } = purchase ?? {};
        expect([what, nonce != null && (await chain.isUsed(wallet.address, nonce as Hex))]).toEqual([
          what,
          isPaid,
        ]);
        // Nothing is sent before it is stored.
        if (isPaid) expect(headers()).toContain(header?.value ?? "");
      }
    });

    test(
      "the next start ends every one, and each key has its answer",
      async () => {
        ({ client } = await machine.serve());
        for (const [what, kill] of Object.entries(KILLS)) {
          const { answer } = kill;
          const reply = await until("it is answered", async () => {
            const one = await client.post("/v1/x402/pay", bodyOf(what), { as, key: what });
            return one.code === "idempotency_in_flight" ? null : one;
          });
          expect([what, reply.status, reply.body.state]).toEqual([what, 200, answer.state]);
          expect([what, reply.body.reason_codes.at(-1)]).toEqual([what, answer.code]);
          expect([what, reply.headers.get("idempotent-replayed")]).toEqual([
            what,
            kill.left === "quoting" ? null : "true",
          ]);
        }
        expect(new Set(headers()).size).toBe(headers().length);
        const used = Object.values(KILLS).filter(({ isPaid, end }) => isPaid || end === "released").length;
        expect(await chain.balanceOf(payTo)).toBe(BigInt(used) * COST);
      },
      ALL_MS,
    );

    // This comes last, since it moves the chain's clock ahead of the real time.
    test(
      "past the expiry the server finds out by itself, and a person ends what was paid",
      async () => {
        await chain.mine(1, PAST_EXPIRY_SECONDS);
        await until(
          "all payments are known",
          () => purchases().every(({ known }) => known !== "unknown"),
          ALL_MS,
        );
        for (const [what, { isPaid, answer, end }] of Object.entries(KILLS)) {
          if (answer === UNKNOWN && isPaid) {
            expect([what, stateOf(what)]).toEqual([what, "escalated"]);
            const path = `/v1/warrants/${purchaseOf(what)?.warrantId}`;
            const [refund, release] = [`${path}/refund`, `${path}/release`];
            expect((await client.post(refund, undefined, { as: admin })).code).toBe("illegal_transition");
            expect((await client.post(release, undefined, { as: admin })).body.state).toBe("released");
          }
          expect([what, stateOf(what)]).toEqual([what, end]);
        }
        const paid = await chain.balanceOf(payTo);
        expect(balance()).toEqual({ available: FUNDS - paid, held: 0n, paid });
        expect(await chain.balanceOf(wallet.address)).toBe(FUNDS - paid);
        expect(purchases().filter(({ known }) => known === "paid")).toHaveLength(Number(paid / COST));
        expect(await machine.ctx.store.audit()).toEqual([]);
      },
      ALL_MS,
    );
  });
}

/** A data folder with what runs on it. */
type Machine = Awaited<ReturnType<typeof openMachine>>;
type Server = Awaited<ReturnType<Machine["serve"]>>;

async function openMachine(chain: Chain, wallet: Wallet) {
  const folder = newLedgerFolder(tmpdir());
  const settings = { ...testSettings(folder), ...settingsOf(chain), X402_SANDBOX_KEY: wallet.key };
  const { X402_SANDBOX_KEY: _, ...open } = settings;
  const config = must(readConfig(open, {}));
  const { ctx: real, close } = await openForCommands(config, databaseSecrets(folder));
  const reading = openTestLedger(folder);
  const ctx = {
    ...real,
    reader: reading.reader,
    passwords: cheapPasswords(real.passwords),
  };
  const children: Bun.Subprocess[] = [];
  const spawn = (args: readonly string[]) => {
    const child = Bun.spawn([process.execPath, ...args], {
      cwd: folder,
      env: {
        ...databaseSettings(folder),
        ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [`HOLDFAST_${name}`, value])),
      },
      stdout: "pipe",
      stderr: "inherit",
    });
    children.push(child);
    return child;
  };
  return {
    ctx,
    spawn,
    /** Nothing else runs in the folder. */
    async serve() {
      takePlacesOfKilled(folder);
      const child = spawn([MAIN, "serve", "--json"]);
      const { value } = await child.stdout.getReader().read();
      const { url } = JSON.parse(new TextDecoder().decode(value));
      return {
        client: createClient(fetch, url, docsUrlOf(config, Number(new URL(url).port))),
        async kill() {
          child.kill("SIGKILL");
          await child.exited;
        },
      };
    },
    async close() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(children.map(({ exited }) => exited));
      reading.close();
      await close();
      removeLedgerFolder(folder);
    },
  };
}
