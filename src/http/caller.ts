import type { AuthSession } from "../core/auth-session.ts";
import type { Caller } from "../core/roles.ts";
import type { User } from "../core/user.ts";
import { callerOfApiKey, signedInBy } from "../services/auth/callers.ts";
import type { Context } from "../services/context.ts";

export const SESSION_COOKIE = "service_session";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

export type Identity = {
  readonly caller: Caller | null;
  readonly signedIn: { readonly user: User; readonly session: AuthSession } | null;
};

const NOBODY: Identity = { caller: null, signedIn: null };

/** Who calls. A bearer decides where both are sent: a bad one is nobody, never a fallback to the cookie. */
export async function identify(ctx: Context, request: Request): Promise<Identity> {
  const authorization = request.headers.get("authorization");
  if (authorization !== null) {
    const secret = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(authorization)?.[1];
    return { caller: secret === undefined ? null : await callerOfApiKey(ctx, secret), signedIn: null };
  }
  const cookies = request.headers.get("cookie");
  if (cookies === null) return NOBODY;
  const token = new Bun.CookieMap(cookies).get(SESSION_COOKIE);
  if (token === null || !isOwnOrigin(request, ctx.baseUrl)) return NOBODY;
  const signedIn = await signedInBy(ctx, token);
  return signedIn ? { caller: signedIn.caller, signedIn } : NOBODY;
}

/** A cookie counts on an unsafe method only from our own pages, or from a program, which sends neither header. */
function isOwnOrigin({ method, headers }: Request, baseUrl: string): boolean {
  if (SAFE_METHODS.has(method)) return true;
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  return (
    (site === null || site === "same-origin" || site === "none") &&
    (origin === null || origin === new URL(baseUrl).origin)
  );
}

/** The cookie of a sign-in, or (with no token) one that removes it. Its end is the session's, which the server keeps. */
export const sessionCookie = (token: string | null, baseUrl: string, maxAgeSeconds: number): string =>
  new Bun.Cookie(SESSION_COOKIE, token ?? "", {
    httpOnly: true,
    sameSite: "lax",
    path: "/",
    secure: baseUrl.startsWith("https:"),
    maxAge: token === null ? 0 : maxAgeSeconds,
  }).toString();
