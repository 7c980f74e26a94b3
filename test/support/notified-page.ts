import type { Page, Worker } from "playwright-core";
import type { Browser } from "./devices.ts";
import { until } from "./until.ts";

/** What a browser shows of a notice. */
export type ShownNotice = {
  readonly title: string;
  readonly body: string;
  readonly tag: string;
  readonly data: { readonly link: string };
};

/** In the page: to subscribe gives the address and the keys of this browser. */
const subscribingAs = ({ endpoint, p256dh, auth }: Browser): string => `
  const subscription = {
    endpoint: ${JSON.stringify(endpoint)},
    toJSON: () => (${JSON.stringify({ endpoint, keys: { p256dh, auth } })}),
    unsubscribe: async () => localStorage.removeItem("subscribed"),
  };
  PushManager.prototype.getSubscription = async () => (localStorage.getItem("subscribed") ? subscription : null);
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (!userVisibleOnly) throw new Error("no push is silent");
    localStorage.setItem("subscribed", applicationServerKey);
    return subscription;
  };
`;

/** In the service worker: `comes` ends when the next notice shows. Who asks for notices before that makes Chromium forget the new one. */
const WAITING_FOR_NOTICE = `{
  const { registration } = globalThis;
  const show = Object.getPrototypeOf(registration).showNotification;
  globalThis.comes = new Promise((resolve, reject) => {
    registration.showNotification = (...notice) => {
      const shows = show.apply(registration, notice);
      shows.then(resolve, reject);
      return shows;
    };
  });
  undefined;
}`;

/**
 * A page whose browser may be notified. Chromium's own push service is not on this machine: to subscribe gives the address and the
 * keys of a test's browser, and messages come by the debugging protocol. The service worker and its notifications are Chromium's.
 * Of a click only the permission to open a window is missing, which a person's hand gives.
 */
export async function notifiedPage(page: Page, base: string, browser: Browser) {
  const context = page.context();
  await context.grantPermissions(["notifications"], { origin: base });
  await page.addInitScript(subscribingAs(browser));
  const protocol = await context.newCDPSession(page);
  const registered = new Promise<string>((resolve) =>
    protocol.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const own = registrations.find(
        ({ scopeURL, isDeleted }) => scopeURL === `${base}/console/` && !isDeleted,
      );
      if (own) resolve(own.registrationId);
    }),
  );
  await protocol.send("ServiceWorker.enable");
  const worker = (): Promise<Worker> =>
    until(
      "the service worker runs",
      () => context.serviceWorkers().find((one) => one.url().startsWith(base)) ?? null,
    );
  const shown = async () =>
    (await worker()).evaluate<ShownNotice[]>(
      "registration.getNotifications().then((all) => all.map(({ title, body, tag, data }) => ({ title, body, tag, data })))",
    );
  return {
    shown,
    /** The key by which the page subscribed. */
    subscribedBy: () => page.evaluate<string>('localStorage.getItem("subscribed")'),
    /** Gives the service worker a message, and answers the notice that it shows. */
    async deliver(text: string): Promise<ShownNotice> {
      const registrationId = await registered;
      const running = await worker();
      await running.evaluate(WAITING_FOR_NOTICE);
      await protocol.send("ServiceWorker.deliverPushMessage", { origin: base, registrationId, data: text });
      await running.evaluate("comes");
      const { tag } = JSON.parse(text);
      const notice = (await shown()).find((one) => one.tag === tag);
      if (!notice) throw new Error(`no notice shows of ${text}`);
      return notice;
    },
    /** Clicks on a notice: what is opened then, and what is shown that is open already. */
    async click(tag: string): Promise<{ readonly opened: string[]; readonly focused: string[] }> {
      return (await worker()).evaluate(`(async () => {
        const [notification] = await registration.getNotifications({ tag: ${JSON.stringify(tag)} });
        const [opened, focused, works] = [[], [], []];
        clients.openWindow = async (href) => void opened.push(href);
        WindowClient.prototype.focus = async function () { focused.push(this.url); };
        const event = new NotificationEvent("notificationclick", { notification });
        event.waitUntil = (work) => works.push(work);
        dispatchEvent(event);
        await Promise.all(works);
        return { opened, focused };
      })()`);
    },
    /** The push service ends the subscription. */
    async expires(): Promise<void> {
      await (await worker()).evaluate(`(async () => {
        const works = [];
        const event = new ExtendableEvent("pushsubscriptionchange");
        event.waitUntil = (work) => works.push(work);
        dispatchEvent(event);
        await Promise.all(works);
      })()`);
    },
  };
}
