import type { Caller } from "../core/roles.ts";
import { isHttps } from "../core/source-url.ts";
import { callerOfApiKey, type SignedIn, signedInBy } from "../services/auth/callers.ts";
import type { Context } from "../services/context.ts";
import type { Call } from "./call.ts";

export const SESSION_COOKIE = "service_session";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request may be a person's. Whose it is, or whether it is anybody's, has to be looked up. */
export const hasSessionCookie = (headers: Headers): boolean =>
  headers.get("cookie")?.includes(`${SESSION_COOKIE}=`) ?? false;

export type Identity = {
  readonly caller: Caller | null;
  readonly signedIn: SignedIn | null;
};

const NOBODY: Identity = { caller: null, signedIn: null };
const BEARER = /^Bearer [\x21-\x7e]{1,256}$/i;
const SCHEME_LENGTH = "Bearer ".length;

/**
 * The caller. Where a bearer token and a cookie are both sent, only the token counts: where it is wrong, the
 * caller is nobody, even with a good cookie. Where a credential has to be looked up, the answer is a promise.
 */
export function identify({ ctx, headers, method }: Call): Identity | Promise<Identity> {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    if (!BEARER.test(authorization)) return NOBODY;
    return identifyKey(ctx, authorization.slice(SCHEME_LENGTH));
  }
  const cookies = headers.get("cookie");
  if (cookies === null) return NOBODY;
  const token = new Bun.CookieMap(cookies).get(SESSION_COOKIE);
  return token !== null && isOwnOrigin(method, headers, ctx.baseUrl)
    ? identifyPerson(ctx, token, isUnattended(headers))
    : NOBODY;
}

function identifyKey(ctx: Context, secret: string): Identity | Promise<Identity> {
  const caller = callerOfApiKey(ctx, secret);
  return caller instanceof Promise ? caller.then(identityOf) : identityOf(caller);
}

const identityOf = (caller: Caller | null): Identity => ({ caller, signedIn: null });

/** Whether a page that is open asks by itself (`console.js`): for its stream, or for a part of it again. */
const isUnattended = (headers: Headers): boolean =>
  headers.get("accept") === "text/event-stream" || headers.has("service-refresh");

async function identifyPerson(ctx: Context, token: string, unattended: boolean): Promise<Identity> {
  const signedIn = await signedInBy(ctx, token, unattended);
  return signedIn ? { caller: signedIn.caller, signedIn } : NOBODY;
}

/**
 * Whether a browser says that one of our own pages sent the request. A program says nothing of it, and no page of another site
 * can write these headers.
 */
export const isFromOwnPage = ({ ctx, headers, method }: Pick<Call, "ctx" | "headers" | "method">): boolean =>
  isOwnOrigin(method, headers, ctx.baseUrl) &&
  (headers.get("sec-fetch-site") === "same-origin" || headers.has("origin"));

/** A cookie counts on an unsafe method only from our own pages, or from a program, which sends neither of the two headers. */
function isOwnOrigin(method: string, headers: Headers, baseUrl: string): boolean {
  if (SAFE_METHODS.has(method)) return true;
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  return (
    (site === null || site === "same-origin" || site === "none") &&
    (origin === null || origin === new URL(baseUrl).origin)
  );
}

/**
 * The cookie of a sign-in; without a token, the cookie that removes it. The server records when the sign-in
 * ends.
 */
export const sessionCookie = (token: string | null, baseUrl: string, maxAgeSeconds: number): string =>
  new Bun.Cookie(SESSION_COOKIE, token ?? "", {
    httpOnly: true,
    sameSite: "lax",
    path: "/",
    secure: isHttps(baseUrl),
    maxAge: token === null ? 0 : maxAgeSeconds,
  }).toString();
