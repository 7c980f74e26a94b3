import { type Refusal, refuseField } from "./errors.ts";
import type { Parse } from "./setting-values.ts";
import { checkSourceUrl, isHttps } from "./source-url.ts";

/** Notices by web push (docs/notices, "Web push"): the browsers that people allowed to be notified. */

/** One browser of a person, with what its push service needs to be sent a message (RFC 8030, RFC 8291). */
export type PushSubscription = {
  readonly id: string;
  readonly organisationId: string;
  readonly userId: string;
  /** Where messages are sent: a URL of the push service. Whoever knows it can send there, so nobody is shown more than its origin. */
  readonly endpoint: string;
  /** The browser's public key, base64url. */
  readonly p256dh: string;
  /** The browser's authentication secret, encrypted. */
  readonly encryptedAuth: string;
  /** What the browser is called in the list. */
  readonly name: string;
  readonly createdAt: number;
  /** When its push service last took a message; null before the first. */
  readonly deliveredAt: number | null;
};

/** What a browser gives of a subscription (`PushSubscription.toJSON()`). */
export type BrowserSubscription = {
  readonly endpoint: string;
  readonly p256dh: string;
  readonly auth: string;
};

/** How many browsers of a person are notified. */
export const PUSH_SUBSCRIPTIONS_MAX = 10;

/** An uncompressed point of P-256 (65 bytes, the first is 4), and 16 bytes. */
const P256DH = /^B[A-Za-z0-9_-]{86}$/;
const AUTH = /^[A-Za-z0-9_-]{22}$/;

/** Refuses what no browser gives. Whether `p256dh` is a point of the curve shows when something is encrypted for it. */
export function refuseSubscription({ endpoint, p256dh, auth }: BrowserSubscription): Refusal | null {
  const problem = checkSourceUrl(endpoint);
  if (problem !== null) return refuseField("endpoint", problem);
  if (!isHttps(endpoint))
    return refuseField("endpoint", "must be an https URL, as a browser's push service gives it");
  if (!P256DH.test(p256dh))
    return refuseField("p256dh", "must be a public key of P-256, 65 bytes in base64url without padding");
  return AUTH.test(auth) ? null : refuseField("auth", "must be 16 bytes in base64url without padding");
}

/** How the operator of a push service reaches whoever runs this instance (RFC 8292): a mailto: or https: URL. */
export const parsePushContact: Parse<string> = (text) =>
  /^mailto:[^\s@<>,;"]{1,64}@[^\s@<>,;"]{1,253}$/.test(text) ||
  (text.length <= 500 && /^https:\/\/\S+$/.test(text) && URL.canParse(text))
    ? text
    : { problem: "must be a mailto: or https: URL, such as mailto:ops@example.org" };

/** The contact where none was chosen: the address that mail is sent from where one was, else the service's site where it has https. */
export function defaultPushContact(baseUrl: string, mailFrom: string | null): string {
  const { protocol, origin, hostname } = new URL(baseUrl);
  if (mailFrom !== null) return `mailto:${mailFrom}`;
  return protocol === "https:" ? origin : `mailto:holdfast@${hostname}`;
}
