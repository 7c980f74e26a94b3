/**
 * `bun run browser`: a person adds a browser to their devices in headless Chromium, whose service worker shows what a push service
 * was sent, and opens it. axe looks at the page, light and dark, and finds nothing serious.
 */
import { afterAll, expect, test } from "bun:test";
import { newNotice } from "../../src/core/notice.ts";
import { composeNotice } from "../../src/services/notices/compose.ts";
import { openAtConsole } from "../support/at-console.ts";
import { WALK_MS } from "../support/chromium.ts";
import { openConsole } from "../support/console.ts";
import { type Browser, DEVICES, deviceForm, pushing } from "../support/devices.ts";
import { notifiedPage } from "../support/notified-page.ts";
import { startPushService } from "../support/push-service.ts";

const PATH = "/console/settings/notices";

const push = startPushService();
const { service, home, base, chromium, page, problems, source, signIn, expectCare } = await openAtConsole();
afterAll(() => push.stop());

const { owner } = home.people;
const devices = () => service.ctx.reader.notices.pushSubscriptionsOf(owner.id);

/** What a browser of the owner is sent of an escalation, as it decrypts it. */
async function messageTo({ endpoint }: Browser, escalationId: string): Promise<string> {
  const { ctx } = service;
  const user = ctx.reader.users.get(owner.id)!;
  const notice = newNotice({
    ...{ id: ctx.newId("notice"), organisationId: home.id, mode: "live", userId: owner.id, channel: "push" },
    about: { kind: "escalations", escalationIds: [escalationId], count: 1, waitedHours: 0 },
    ...{ subject: "escalations 0", createdAt: ctx.now() },
  });
  const send = pushing(() => ctx);
  expect(await send(notice, user, await composeNotice(ctx, notice, user, null))).toMatchObject({
    outcome: "delivered",
    answer: "2 of 2 took it: 201, 201",
  });
  return push.received().find((pushed) => pushed.endpoint === endpoint)!.text;
}

async function escalated(): Promise<string> {
  const { as } = home.live;
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.done", equals: true }] };
  const { id } = await service.opened(home, { amount: "3000000", payee: "Contoso", spec }, { as });
  const source_url = source.gives({ done: false });
  expect((await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as })).body.state).toBe(
    "escalated",
  );
  return service.ctx.reader.escalations.list({ organisationId: home.id, mode: "live" }, 1)[0]!.id;
}

test(
  "a browser that does not allow notices is told so, and one that cannot show them too",
  async () => {
    await signIn(page, "owner", PATH);
    await page.getByText("No device yet").waitFor();
    await expectCare(PATH);
    await page.click("button:has-text('Notify me on this device')");
    await page.getByText("This browser does not let this page notify you.").waitFor();
    expect(devices()).toEqual([]);
    const old = await chromium.openPage();
    await old.addInitScript("delete globalThis.PushManager");
    await signIn(old, "owner", PATH);
    await old.getByText("This browser cannot be notified here.").waitFor();
    expect(await old.getByRole("button", { name: "Notify me on this device" }).isVisible()).toBe(false);
    await old.context().close();
  },
  WALK_MS,
);

test(
  "a device is added, shows a notice, opens what it is about, and is removed",
  async () => {
    const browser = push.subscribe();
    const notified = await notifiedPage(page, base, browser);
    await page.goto(base + PATH);
    await page.fill("#device_name", "Ada's laptop");
    await page.click("button:has-text('Notify me on this device')");
    await page.getByText("You are notified on this device from now on.").waitFor();
    await page.locator("#devices").getByText("this one").waitFor();
    expect(await page.getByRole("button", { name: "Notify me on this device" }).isVisible()).toBe(false);
    expect(devices()).toMatchObject([{ endpoint: browser.endpoint, name: "Ada's laptop" }]);
    expect(await notified.subscribedBy()).toBe(service.ctx.webPush.publicKey);
    // Another one of hers is not this one. It shows without a reload.
    const elsewhere = openConsole(service, owner.as);
    const phone = { ...(await elsewhere.formOn(PATH, DEVICES)), ...deviceForm(push.subscribe(), "Phone") };
    expect((await elsewhere.post(DEVICES, phone)).status).toBe(303);
    await page.getByText("Phone", { exact: true }).waitFor();
    expect(await page.getByText("this one").locator("visible=true").count()).toBe(1);
    await expectCare(PATH);

    const id = await escalated();
    const notice = await notified.deliver(await messageTo(browser, id));
    expect(notice).toMatchObject({
      title: "3.00 USDC waits for your decision",
      body: expect.stringContaining("3.00 USDC to Contoso"),
    });
    const link = `${base}/console/escalations/${id}`;
    expect(await notified.click(notice.tag)).toEqual({ opened: [link], focused: [] });
    expect(await notified.shown()).toEqual([]);
    await page.goto(link);
    await page.getByText("Contoso").first().waitFor();
    // Where the page is open already, it comes to the front.
    const again = await notified.deliver(await messageTo(browser, id));
    expect(await notified.click(again.tag)).toEqual({ opened: [], focused: [link] });

    await notified.expires();
    const [ended, ...others] = await notified.shown();
    expect([ended?.title, others]).toEqual(["This device is not notified any more", []]);
    expect(await notified.click("device")).toEqual({ opened: [base + PATH], focused: [] });

    await page.goto(base + PATH);
    for (const left of ["Phone", null]) {
      await page.getByRole("button", { name: "Remove" }).first().click();
      await page.getByText("You are not notified on that device any more.").waitFor();
      await page.getByText(left ?? "No device yet", { exact: true }).waitFor();
    }
    expect(devices()).toEqual([]);
    expect(problems).toEqual([]);
  },
  WALK_MS,
);
