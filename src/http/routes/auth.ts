import { Elysia } from "elysia";
import { isRefusal } from "../../core/errors.ts";
import type { Budget } from "../../core/rate.ts";
import { ACCESS } from "../../core/roles.ts";
import { SESSION_MAX_MS } from "../../services/auth/callers.ts";
import { authSessionResource, signIn, signOut } from "../../services/auth/sign-in.ts";
import { FAILURES_OF_PAIR_MAX } from "../../services/auth/throttle.ts";
import { respond } from "../answers.ts";
import type { Call } from "../call.ts";
import { sessionCookie } from "../caller.ts";
import { refusalResponse } from "../errors.ts";
import { noBody, noQuery, signInBody } from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const tags = ["Sign-in"];

function signedInOf(call: Call) {
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

/** `/auth/session` (interface.md, Sign-in; decisions.md, Sign-in, roles, passkeys). */
export const authRoutes = new Elysia({ prefix: "/auth/session", aot: false, normalize: false })
  .use(withCall)
  .post(
    "",
    async ({ call, body }) => {
      const session = await signIn(call.ctx, body, call.address());
      if (isRefusal(session)) {
        if (session.refused === "rate_limit_exceeded") call.budget = throttledBudget(call);
        return refusalResponse(call, session);
      }
      const response = respond(call, session.resource, 201);
      response.headers.set(
        "Set-Cookie",
        sessionCookie(session.token, call.ctx.baseUrl, SESSION_MAX_MS / 1_000),
      );
      return response;
    },
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
    "",
    ({ call }) =>
      respond(call, authSessionResource(call.ctx, signedInOf(call).user, signedInOf(call).session)),
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Who is signed in",
        access: ACCESS.readConsole,
        bucket: "read",
        responses: { "200": "Who is signed in." },
      }),
    },
  )
  .delete(
    "",
    async ({ call }) => {
      const { user, session } = signedInOf(call);
      await signOut(call.ctx, user, session);
      return new Response(null, {
        status: 204,
        headers: { "Set-Cookie": sessionCookie(null, call.ctx.baseUrl, 0) },
      });
    },
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign out",
        access: ACCESS.readConsole,
        bucket: "write",
        responses: { "204": "Signed out." },
      }),
    },
  );
