import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Json } from "../support/client.ts";
import { makeOrganisation } from "../support/organisations.ts";
import { openServerFolder, type ServerFolder } from "../support/server-process.ts";
import { type Answer, type Listener, listen } from "../x402/listener.ts";

/** Purchases whose process ends in the middle. */

const PROCESS_TIMEOUT_MS = 30_000;

let folder: ServerFolder;
let seller: Listener;
let delivers: () => Answer;
let paid: PromiseWithResolvers<void>;
let payments: number;
beforeEach(async () => {
  folder = await openServerFolder();
  paid = Promise.withResolvers();
  payments = 0;
  delivers = () => "never";
  seller = await listen((request) => {
    if (!request.headers.has("x-payment"))
      return Response.json({ amount: "100", asset: "USDC", payee: "acme" }, { status: 402 });
    payments += 1;
    paid.resolve();
    return delivers();
  });
});
afterEach(async () => {
  await folder.close();
  await seller.close();
});

test(
  "kill -9 while the seller is paid: the next start returns the hold before it serves, and the key replays that",
  async () => {
    const first = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, first.client);
    const options = { as: home.sandbox.as, key: "buy-once" };
    const body = {
      url: `${seller.url}/goods`,
      max_amount: "100",
      spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    };
    const pay = (client: typeof first.client) => client.post("/v1/x402/pay", body, options);
    const cutOff = pay(first.client)
      .then(() => "answered")
      .catch(() => "cut off");
    await paid.promise;
    expect((await pay(first.client)).code).toBe("idempotency_in_flight");
    expect(await first.end("SIGKILL")).toBeNull();
    expect(await cutOff).toBe("cut off");

    delivers = () => Response.json({});
    const second = await folder.start("1");
    const replayed = await pay(second.client);
    expect(replayed.body).toMatchObject({ state: "refunded", paid: false, status: 0, body: "" });
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
    const trace = await second.client.get(`/v1/warrants/${replayed.body.warrant_id}/trace`, options);
    expect(trace.body.data.map(({ to, actor }: Json) => `${to} by ${actor.kind}`)).toEqual([
      "held by agent",
      "refunded by system",
    ]);
    expect(payments).toBe(1);
    expect(await folder.ctx.store.audit()).toEqual([]);
    // A new request of the caller is served as usual.
    const again = await second.client.post("/v1/x402/pay", body, { ...options, key: "buy-again" });
    expect(again.body).toMatchObject({ state: "released", paid: true });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "the chains that a server can ask are stored for the commands beside it, and removed when it cannot ask them any more",
  async () => {
    const first = await folder.start("1", {
      EVM_RPC: "eip155:84532=http://127.0.0.1:9,eip155:8453=http://127.0.0.1:9",
    });
    const chainIds = () => folder.ctx.reader.instance.get()?.chainIds;
    expect(chainIds()).toEqual([8_453, 84_532]);
    await first.end("SIGTERM");
    await folder.start("1");
    expect(chainIds()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);
