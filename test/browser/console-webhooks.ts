/**
 * `bun run browser`: webhooks, money, purchases, and what shows by itself when something changes, in headless Chromium. axe looks
 * at each page, light, dark and on a phone.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Page } from "playwright-core";
import { addDepositSender } from "../../src/services/admin/deposit-senders.ts";
import { openAtConsole } from "../support/at-console.ts";
import { WALK_MS } from "../support/chromium.ts";
import { must } from "../support/organisations.ts";
import { startReceiver } from "../support/receiver.ts";
import { listen } from "../x402/listener.ts";

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.done", equals: true }] };

/** A treasury whose chain is away: the page of money shows where to pay in. */
const TREASURY = {
  TREASURY_LIVE: `eip155:8453/0x${"70".repeat(20)}=USDC:5:50`,
  EVM_RPC: "eip155:8453=http://127.0.0.1:1",
};

const { source, service, home, base, chromium, page, problems, signIn, expectCare } = await openAtConsole(
  TREASURY,
  {
    treasuryLiveKey: `0x${"1f".repeat(32)}`,
  },
);
const receiver = startReceiver();
beforeAll(() => signIn(page, "admin", "/console"), WALK_MS);
afterAll(() => receiver.stop());

const pathNow = () => new URL(page.url()).pathname;

/** Whether the page was loaded anew since this was asked first. */
async function watchReloads(of: Page): Promise<() => Promise<boolean>> {
  await of.evaluate("globalThis.stays = true");
  return async () => (await of.evaluate("globalThis.stays")) !== true;
}

async function escalated(amount = "1000000", payee = "Ada's Data Co."): Promise<string> {
  const { id } = await service.opened(home, { amount, spec: SPEC, payee });
  await service.post(
    `/v1/warrants/${id}/verify`,
    { source_url: source.gives({ done: false }) },
    {
      as: home.live.as,
    },
  );
  return id;
}

test(
  "an endpoint is added, its secret is shown once, and a delivery to it is sent again",
  async () => {
    await page.click("nav >> text=Webhooks");
    await expectCare("/console/webhooks");
    await page.click("text=Add the first one");
    await expectCare("/console/webhooks/new");
    await page.fill("#url", receiver.url("/hook"));
    await page.check("[name='event_warrant.opened']");
    await page.click("text=Add it");
    await page.getByRole("heading", { name: "The endpoint is added" }).waitFor();
    expect(await page.inputValue("#secret")).toStartWith("whsec_");
    await page.click("text=I have saved it");
    const endpoint = pathNow();
    expect(await page.content()).not.toContain("whsec_");
    // What is sent shows by itself.
    const wasReloaded = await watchReloads(page);
    await service.opened(home, { payee: "Northwind" });
    await page.locator("#deliveries").getByText("Delivered").waitFor();
    expect(await wasReloaded()).toBe(false);
    await expectCare(endpoint);
    await page.locator("#deliveries").getByText("warrant.opened").click();
    await page.getByText("Answer to the last attempt").waitFor();
    await expectCare(pathNow());
    const first = page.url();
    await page.getByText("Send it again").dblclick();
    await page.getByText("The event is on its way again").waitFor();
    expect(page.url()).not.toBe(first);
    await page.locator("#progress").getByText("Delivered").waitFor();
    expect(receiver.received.filter(({ path }) => path === "/hook")).toHaveLength(2);
  },
  WALK_MS,
);

test(
  "an example is sent, deliveries are narrowed, and the endpoint is disabled",
  async () => {
    await page.goto(`${base}/console/webhooks`);
    await page.locator("#endpoints a").click();
    await page.getByRole("heading", { name: "Endpoint" }).waitFor();
    const endpoint = pathNow();
    await page.click("text=Send an example");
    await page.getByText("The example is on its way.").waitFor();
    await page.goto(`${base}/console/deliveries`);
    await page.selectOption("#status", "delivered");
    await page.waitForURL(/status=delivered/);
    await expectCare("/console/deliveries");
    await page.goto(base + endpoint);
    await page.click("text=Disable");
    await page.getByRole("dialog").getByText("Disable this endpoint?").waitFor();
    await page.getByRole("dialog").getByText("Disable it").click();
    await page.getByText("The endpoint is disabled.").waitFor();
    await expectCare(`${endpoint}/disable`);
  },
  WALK_MS,
);

test(
  "a warrant that another client changes shows without a reload: in its page, the list and the overview",
  async () => {
    const other = await page.context().newPage();
    const third = await page.context().newPage();
    const { id } = await service.opened(home, { amount: "7000000", spec: SPEC, payee: "Zeno" });
    // A page that nobody sees has no stream, so each is brought to the front.
    await page.goto(`${base}/console/warrants/${id}`);
    await page.locator("h1").getByText("Held").waitFor();
    const reloads = await watchReloads(page);
    await service.post(`/v1/warrants/${id}/release`, undefined, { as: home.people.operator.as });
    await page.locator("h1").getByText("Released").waitFor();
    await page.getByText("Receipt").first().waitFor();
    expect(await reloads()).toBe(false);

    await other.goto(`${base}/console/warrants`);
    await other.getByText("Zeno").waitFor();
    const listReloads = await watchReloads(other);
    await service.opened(home, { payee: "Parmenides" });
    await other.getByText("Parmenides").waitFor();
    expect(await listReloads()).toBe(false);

    await third.goto(`${base}/console`);
    const overviewReloads = await watchReloads(third);
    const before = await third.locator("#figures").textContent();
    await escalated("5000000", "Melissus");
    await third.locator("#needs").getByText("Melissus").waitFor();
    await third.locator("#waiting").getByText("1").waitFor();
    expect(await third.locator("#figures").textContent()).not.toBe(before);
    expect(await overviewReloads()).toBe(false);
    await other.close();
    await third.close();
  },
  WALK_MS,
);

test(
  "what one is typing stays, and one is told that it changed",
  async () => {
    const id = await escalated("3000000", "Gorgias");
    await page.goto(`${base}/console/warrants/${(await service.opened(home, { spec: SPEC })).id}`);
    await page.fill("#source_url", "https://half.exam");
    const path = pathNow();
    await service.post(`/v1/warrants/${path.split("/").at(-1)}/release`, undefined, {
      as: home.people.operator.as,
    });
    await page.locator("h1").getByText("Released").waitFor();
    await page.getByText("This has changed while you were at it.").waitFor();
    expect(await page.inputValue("#source_url")).toBe("https://half.exam");
    await page.click("text=Show it");
    await page.locator("#source_url").waitFor({ state: "detached" });

    await page.goto(`${base}/console/escalations`);
    await page.locator(`[data-inbox] >> text=Gorgias`).click();
    await page.fill("#note", "not there y");
    await escalated("2000000", "Protagoras");
    await page.locator("[data-inbox]").getByText("Protagoras").waitFor();
    expect(await page.inputValue("#note")).toBe("not there y");
    await service.post(
      `/v1/console/escalations/${id}/resolve`,
      { decision: "refund" },
      { as: home.people.operator.as },
    );
    await page.getByText("This has changed while you were at it.").waitFor();
    expect(await page.inputValue("#note")).toBe("not there y");
  },
  WALK_MS,
);

/** Passes connections on to the service, and cuts them when it is told to. */
function openProxy() {
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    const onward = connect(Number(new URL(service.url).port), "127.0.0.1");
    for (const one of [socket, onward]) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => sockets.delete(one));
    }
    socket.pipe(onward).pipe(socket);
  }).listen(0);
  return {
    url: `http://localhost:${(proxy.address() as AddressInfo).port}`,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    close: () => proxy.close(),
  };
}

test(
  "a stream that is cut goes on, and what changed meanwhile shows",
  async () => {
    const proxy = openProxy();
    const asked: (string | undefined)[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/console/events")) asked.push(request.headers()["last-event-id"]);
    });
    await page.goto(`${proxy.url}/console/warrants`);
    await page.getByText("Gorgias").waitFor();
    const wasReloaded = await watchReloads(page);
    await service.opened(home, { payee: "Before" });
    await page.getByText("Before").waitFor();
    proxy.cut();
    await service.opened(home, { payee: "While away" });
    await page.getByText("While away").waitFor();
    expect(await wasReloaded()).toBe(false);
    expect(asked.length).toBe(2);
    proxy.cut();
    proxy.close();
    await page.goto(`${base}/console`);
  },
  WALK_MS,
);

test(
  "signing out elsewhere ends it, and the page says so",
  async () => {
    const own = await chromium.openPage();
    // The stream is there before the sign-in ends.
    const stream = own.waitForResponse((response) => response.url().includes("/console/events"));
    await signIn(own, "viewer", "/console/money");
    await stream;
    const cookies = await own.context().cookies();
    const session = cookies.find(({ name }) => name === "service_session");
    await service.send("DELETE", "/auth/session", undefined, {
      as: { Cookie: `service_session=${session?.value}` },
    });
    await own.getByText("You are signed out.").waitFor();
    await own.context().close();
  },
  WALK_MS,
);

test(
  "a deposit is confirmed and recorded where no treasury holds the asset, and the balances show it",
  async () => {
    await page.click("nav >> text=Money");
    await expectCare("/console/money");
    await page.getByText("No address is registered as yours.").waitFor();
    const sender = {
      organisation_id: home.id,
      mode: "live",
      address: `0x${"ac".repeat(20)}`,
      note: "ours",
    } as const;
    must(await addDepositSender(service.ctx, sender));
    await page.click("text=Record a deposit");
    await expectCare("/console/money/deposit");
    await page.fill("#amount", "12.345678");
    await page.fill("#reference", "wire 1");
    await page.click("text=Go on");
    await page.getByRole("heading", { name: "Record 12.345678 USDC?" }).waitFor();
    await expectCare(pathNow() + new URL(page.url()).search);
    await page.getByText("Record it").dblclick();
    // The treasury has the money of all organisations.
    await page.getByText("USDC comes in on a chain").waitFor();
    await page.goto(`${base}/console/money/deposit`);
    await page.fill("#amount", "12345678");
    await page.fill("#asset", "EURC");
    await page.fill("#reference", "wire 1");
    await page.click("text=Go on");
    await page.getByText("Record it").dblclick();
    await page.getByText("The deposit is recorded.").waitFor();
    expect(await page.getByText("wire 1").count()).toBe(1);
    await expectCare("/console/money");
  },
  WALK_MS,
);

test(
  "a purchase shows what is known of its payment",
  async () => {
    await page.click("nav >> text=Purchases");
    await page.getByText("Nothing has been bought yet").waitFor();
    await expectCare("/console/purchases");
    const seller = await listen((request) =>
      request.headers.has("x-payment")
        ? Response.json({ done: true })
        : Response.json({ amount: "250000", asset: "USDC", payee: "Weather GmbH" }, { status: 402 }),
    );
    const order = { url: `${seller.url}/forecast`, max_amount: "1000000", spec: SPEC };
    await service.post("/v1/x402/pay", order, { as: home.live.as });
    await page.getByText("/forecast").click();
    await page.getByText("a voucher: the settlement in the ledger pays").waitFor();
    await expectCare(pathNow());
    await expectCare("/console/purchases");
    await seller.close();
  },
  WALK_MS,
);

test(
  "without a script everything is there",
  async () => {
    const plain = await chromium.openWithoutScript();
    await signIn(plain, "admin", "/console/webhooks/new");
    await plain.fill("#url", receiver.url("/plain"));
    await plain.click("text=Add it");
    expect(await plain.inputValue("#secret")).toStartWith("whsec_");
    await plain.click("text=I have saved it");
    await plain.click("text=Disable");
    await plain.click("text=Disable it");
    await plain.getByText("The endpoint is disabled.").waitFor();
    await plain.context().close();
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
