import { createDecipheriv, createPublicKey, hkdfSync, verify } from "node:crypto";
import type { Json } from "./client.ts";
import { type Browser, newBrowser } from "./devices.ts";
import { LOCALHOST_CERTIFICATE, LOCALHOST_PRIVATE_KEY } from "./tls.ts";

/**
 * A push service on this machine, and the browsers that are subscribed to it. It takes a message only where what RFC 8030, 8188,
 * 8291 and 8292 ask for is right, and decrypts it as the browser does. Nothing of it is shared with the code under test.
 */

/** A message as a browser reads it. */
export type Pushed = {
  readonly endpoint: string;
  /** What the page's service worker gets. */
  readonly text: string;
  readonly message: Json;
  readonly headers: {
    readonly ttl: string | null;
    readonly urgency: string | null;
    readonly topic: string | null;
  };
  /** The claims of its token, and by which key it is signed. */
  readonly claims: Json;
  readonly key: string;
};

const DAY_SECONDS = 86_400;
const MESSAGE_BYTES_MAX = 4_096;
const URGENCIES = [null, "very-low", "low", "normal", "high"];
const fromBase64 = (text: string) => Buffer.from(text, "base64url");

/** @param now the clock that tokens are judged by, epoch milliseconds */
export function startPushService(now: () => number = Date.now) {
  const browsers = new Map<string, Browser>();
  const gone = new Set<string>();
  const received: Pushed[] = [];
  const refused: string[] = [];
  const answers: (() => Response | Promise<Response>)[] = [];
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, idleTimeout: 0 },
    tls: { cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_PRIVATE_KEY },
    async fetch(request) {
      const browser = browsers.get(request.url);
      if (gone.has(request.url)) return new Response("push subscription has unsubscribed", { status: 410 });
      if (!browser) return new Response("no such subscription", { status: 404 });
      const body = Buffer.from(await request.arrayBuffer());
      const problem = problemOf(request, body, browser, Math.floor(now() / 1_000));
      if (typeof problem === "string") {
        refused.push(problem);
        return new Response(`${request.url}: ${problem}`, { status: 400 });
      }
      const planned = await answers.shift()?.();
      if (planned && !planned.ok) return planned;
      received.push(problem);
      return planned ?? new Response(null, { status: 201 });
    },
  });
  const origin = `https://127.0.0.1:${server.port}`;
  return {
    origin,
    /** What browsers were sent since the last call. */
    received: (): readonly Pushed[] => received.splice(0),
    /** Why messages were refused since the last call. */
    refused: (): readonly string[] => refused.splice(0),
    /** Plans the answers to the next messages that are right. Only what is answered with 2xx reaches its browser. */
    answer: (...next: readonly (() => Response | Promise<Response>)[]): void => void answers.push(...next),
    /** A browser that allows notices. */
    subscribe(): Browser {
      const browser = newBrowser(origin);
      browsers.set(browser.endpoint, browser);
      return browser;
    },
    unsubscribe: ({ endpoint }: Browser): void => void gone.add(endpoint),
    stop: () => void server.stop(true),
  };
}

export type PushService = ReturnType<typeof startPushService>;

/** What a message says, or why no push service takes it. */
function problemOf(
  { url, method, headers }: Request,
  body: Buffer,
  browser: Browser,
  nowSeconds: number,
): Pushed | string {
  if (method !== "POST") return "a message is posted";
  const [ttl, urgency, topic] = ["ttl", "urgency", "topic"].map((name) => headers.get(name));
  if (!/^\d{1,9}$/.test(ttl ?? "")) return "TTL is missing";
  if (!URGENCIES.includes(urgency ?? null)) return `no such urgency: ${urgency}`;
  if (topic && !/^[A-Za-z0-9_-]{1,32}$/.test(topic)) return `no topic: ${topic}`;
  if (headers.get("content-encoding") !== "aes128gcm") return "not encrypted";
  if (body.length > MESSAGE_BYTES_MAX) return `too long: ${body.length}`;
  const [, token = "", key = ""] =
    /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(headers.get("authorization") ?? "") ?? [];
  const claims = claimsOf(token, key);
  if (typeof claims === "string") return claims;
  if (claims.aud !== new URL(url).origin) return `the token is for ${claims.aud}`;
  if (!(claims.exp > nowSeconds && claims.exp <= nowSeconds + DAY_SECONDS))
    return `it holds until ${claims.exp}`;
  if (!/^(mailto:|https:)/.test(claims.sub ?? "")) return `no contact: ${claims.sub}`;
  const text = decryptMessage(body, browser);
  if (text === null) return "it is encrypted for another browser";
  const shown = { ttl: ttl ?? null, urgency: urgency ?? null, topic: topic ?? null };
  return { endpoint: url, text, message: JSON.parse(text), headers: shown, claims, key };
}

/** The claims of a token that the key has signed (ES256), or why there are none. */
function claimsOf(token: string, key: string): Json {
  const [head = "", payload = "", signature = ""] = token.split(".");
  const point = fromBase64(key);
  if (point.length !== 65 || point[0] !== 4) return "the key is no point";
  const [x, y] = [point.toString("base64url", 1, 33), point.toString("base64url", 33)];
  const publicKey = createPublicKey({ key: { kty: "EC", crv: "P-256", x, y }, format: "jwk" });
  if (JSON.parse(String(fromBase64(head))).alg !== "ES256") return "not ES256";
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${payload}`),
    { key: publicKey, dsaEncoding: "ieee-p1363" },
    fromBase64(signature),
  );
  return isSigned ? JSON.parse(String(fromBase64(payload))) : "the signature is wrong";
}

/** The text of a message in the coding of RFC 8188 with the keys of RFC 8291; null where it is not for this browser. */
export function decryptMessage(body: Buffer, { keys, auth }: Pick<Browser, "keys" | "auth">): string | null {
  const [salt, recordBytes, idBytes] = [body.subarray(0, 16), body.readUInt32BE(16), body.readUInt8(20)];
  const [sender, record] = [body.subarray(21, 21 + idBytes), body.subarray(21 + idBytes)];
  // A message is one record.
  if (record.length > recordBytes || record.length < 18) return null;
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), keys.getPublicKey(), sender]);
  const derive = (key: Buffer, from: Buffer, about: Buffer, bytes: number) =>
    Buffer.from(hkdfSync("sha256", key, from, about, bytes));
  const shared = derive(keys.computeSecret(sender), fromBase64(auth), info, 32);
  const [key, nonce] = (
    [
      ["aes128gcm", 16],
      ["nonce", 12],
    ] as const
  ).map(([name, bytes]) => derive(shared, salt, Buffer.from(`Content-Encoding: ${name}\0`), bytes));
  const decipher = createDecipheriv("aes-128-gcm", key!, nonce!).setAuthTag(record.subarray(-16));
  try {
    const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()]);
    // The last record ends in a 2, and zeros that fill it up.
    const end = padded.findLastIndex((byte) => byte !== 0);
    return padded[end] === 2 ? padded.toString("utf8", 0, end) : null;
  } catch {
    return null;
  }
}
