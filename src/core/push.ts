/** Notices by web push (docs/notices, "Notices"): the browsers that people allowed to be notified. */

/** One browser of a person, with what its push service needs to be sent a message (RFC 8030, RFC 8291). */
export type PushSubscription = {
  readonly id: string;
  readonly organisationId: string;
  readonly userId: string;
  /** Where messages are sent: a URL of the push service. */
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
