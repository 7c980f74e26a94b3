import { Elysia } from "elysia";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Budget } from "../../core/rate.ts";
import { ACCESS } from "../../core/roles.ts";
import { SESSION_MAX_MS } from "../../services/auth/callers.ts";
import { changePassword, resetPassword } from "../../services/auth/password.ts";
import {
  type NewSession,
  readAuthSession,
  signIn,
  signOut,
  signOutEverywhere,
} from "../../services/auth/sign-in.ts";
import { FAILURES_OF_PAIR_MAX } from "../../services/auth/throttle.ts";
import { respond } from "../answers.ts";
import type { Call } from "../call.ts";
import { sessionCookie } from "../caller.ts";
import { refusalResponse } from "../errors.ts";
import { noBody, noQuery, passwordBody, passwordResetBody, signInBody } from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const tags = ["Sign-in"];

/** The person and the sign-in of a route that asks for one. */
export function signedInOf(call: Call) {
  if (!call.signedIn) throw new Error("a person's route without a person");
  return call.signedIn;
}

/** Too many failed sign-ins: the headers tell of that window, which is longer than the bucket's. */
const throttledBudget = ({ ctx }: Call): Budget => ({
  limit: FAILURES_OF_PAIR_MAX,
  remaining: 0,
  resetSeconds: ctx.signInThrottle.resetSeconds(ctx.now()),
  exceeded: true,
});

/** The refusal of a verb that counts failed sign-ins. */
export function respondThrottled(call: Call, refusal: Refusal): Response {
  if (refusal.refused === "rate_limit_exceeded") call.budget = throttledBudget(call);
  return refusalResponse(call, refusal);
}

/** Who has signed in, and the cookie; or why not. */
export function respondSignIn(call: Call, session: NewSession | Refusal): Response {
  if (isRefusal(session)) return respondThrottled(call, session);
  const response = respond(call, session.resource, 201);
  response.headers.set("Set-Cookie", sessionCookie(session.token, call.ctx.baseUrl, SESSION_MAX_MS / 1_000));
  return response;
}

const noContent = (): Response => new Response(null, { status: 204 });

const respondSignedOut = (call: Call): Response =>
  new Response(null, {
    status: 204,
    headers: { "Set-Cookie": sessionCookie(null, call.ctx.baseUrl, 0) },
  });

/** `/auth/session` and what belongs to it (interface.md, Sign-in; decisions.md, Sign-in, roles, passkeys). */
export const authRoutes = new Elysia({ prefix: "/auth", aot: false, normalize: false })
  .use(withCall)
  .post(
    "/session",
    async ({ call, body }) => respondSignIn(call, await signIn(call.ctx, body, call.address())),
    {
      body: signInBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign a person in",
        access: null,
        bucket: "write",
        responses: { "201": "Who is signed in; the cookie is set.", "401": "not_authenticated" },
      }),
    },
  )
  .get(
    "/session",
    async ({ call }) =>
      respond(call, await readAuthSession(call.ctx, signedInOf(call).user, signedInOf(call).session)),
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Who is signed in",
        access: ACCESS.keepOwnSignIn,
        bucket: "read",
        responses: { "200": "Who is signed in." },
      }),
    },
  )
  .delete(
    "/session",
    async ({ call }) => {
      const { user, session } = signedInOf(call);
      await signOut(call.ctx, user, session);
      return respondSignedOut(call);
    },
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign out",
        access: ACCESS.keepOwnSignIn,
        bucket: "write",
        responses: { "204": "Signed out." },
      }),
    },
  )
  .delete(
    "/sessions",
    async ({ call }) => {
      await signOutEverywhere(call.ctx, signedInOf(call).user);
      return respondSignedOut(call);
    },
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign out everywhere",
        access: ACCESS.keepOwnSignIn,
        bucket: "write",
        responses: { "204": "Signed out: this sign-in and all others of the person." },
      }),
    },
  )
  .post(
    "/password",
    async ({ call, body }) => {
      const refusal = await changePassword(call.ctx, signedInOf(call), body, call.address());
      return refusal ? respondThrottled(call, refusal) : noContent();
    },
    {
      body: passwordBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Change one's password",
        access: ACCESS.keepOwnSignIn,
        bucket: "write",
        responses: { "204": "Changed; the person's other sign-ins end.", "401": "not_authenticated" },
      }),
    },
  )
  .post(
    "/password/reset",
    async ({ call, body }) => {
      const refusal = await resetPassword(call.ctx, body, call.address());
      return refusal ? respondThrottled(call, refusal) : noContent();
    },
    {
      body: passwordResetBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Choose a new password by a one-time link",
        access: null,
        bucket: "write",
        responses: { "204": "Changed; all sign-ins of the person end.", "401": "not_authenticated" },
      }),
    },
  );
