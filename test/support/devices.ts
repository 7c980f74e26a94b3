import { createECDH, randomBytes } from "node:crypto";
import { createWebhookSender } from "../../src/platform/webhook-sender.ts";
import type { Context, SendNotice } from "../../src/services/context.ts";
import { pushSender } from "../../src/services/notices/push.ts";
import { LOCALHOST_CERTIFICATE } from "./tls.ts";

export const DEVICES = "/console/settings/notices/devices";
export const CONTACT = "mailto:ops@example.org";

/** A browser that allowed notices: what it gives the page, and its private key. */
export function newBrowser(origin = "https://push.example.com") {
  const keys = createECDH("prime256v1");
  const p256dh = keys.generateKeys("base64url");
  const endpoint = `${origin}/push/${randomBytes(24).toString("base64url")}`;
  return { endpoint, p256dh, auth: randomBytes(16).toString("base64url"), keys };
}

export type Browser = ReturnType<typeof newBrowser>;

/** The form that adds a browser to one's devices, as the page's script fills it in. */
export function deviceForm({ endpoint, p256dh, auth }: Browser = newBrowser(), name = "Laptop") {
  return { endpoint, p256dh, auth, device_name: name };
}

/** Sends push notices to a push service on this machine. */
export function pushing(
  ctx: () => Context,
  { certificateAuthorities = [LOCALHOST_CERTIFICATE] } = {},
): SendNotice {
  const { send: post } = createWebhookSender({
    ...{ allowNetworks: ["127.0.0.0/8"], timeoutMs: 2_000, certificateAuthorities },
  });
  return (...notice) => pushSender({ ...ctx(), contact: CONTACT, post })(...notice);
}
