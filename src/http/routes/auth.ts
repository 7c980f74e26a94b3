import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Budget } from "../../core/rate.ts";
import { ACCESS } from "../../core/roles.ts";
import { authSessionForm, signInBody } from "../../resources/auth-session.ts";
import { noBody, noQuery } from "../../resources/input.ts";
import { passwordBody, passwordResetBody } from "../../resources/password.ts";
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
import { type Answer, json, noContent, type Result, resource } from "../answers.ts";
import { addressOf, type Call, signedInOf } from "../call.ts";
import { sessionCookie } from "../caller.ts";
import { del, get, post, type Route, route } from "../route.ts";

const tags = ["Sign-in"];

/** After too many failed sign-ins, the headers describe the window of failed sign-ins, not that of the bucket. */
const throttledBudget = ({ ctx }: Call): Budget => ({
  limit: FAILURES_OF_PAIR_MAX,
  remaining: 0,
  resetSeconds: ctx.signInThrottle.resetSeconds(ctx.now()),
  exceeded: true,
});

/** The refusal of a verb that counts failed sign-ins, with the window of these failures in the headers. */
export function refuseThrottled(call: Call, refusal: Refusal): Refusal {
  if (refusal.refused === "rate_limit_exceeded") call.budget = throttledBudget(call);
  return refusal;
}

/** 201 with the session and its cookie, or the refusal. */
export function signedIn(call: Call, session: NewSession | Refusal): Result {
  if (isRefusal(session)) return refuseThrottled(call, session);
  const cookie = sessionCookie(session.token, call.ctx.baseUrl, SESSION_MAX_MS / 1_000);
  return { ...json(session.resource, 201), headers: { "Set-Cookie": cookie } };
}

const signedOut = ({ ctx }: Call): Answer => noContent({ "Set-Cookie": sessionCookie(null, ctx.baseUrl, 0) });

/** 204, or the refusal. */
export const unlessThrottled = (call: Call, refusal: Refusal | null): Result =>
  refusal ? refuseThrottled(call, refusal) : noContent();

/** `/auth/session` and what belongs to it (README, "People and authority"). */
export const authRoutes: readonly Route[] = [
  post(
    "/auth/session",
    {
      body: signInBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign a person in",
        access: null,
        bucket: "write",
        answers: authSessionForm,
        responses: { "201": "Who is signed in; the cookie is set.", "401": "not_authenticated" },
      }),
    },
    async (call) => signedIn(call, await signIn(call.ctx, call.body, addressOf(call))),
  ),
  get(
    "/auth/session",
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Who is signed in",
        access: ACCESS.endOwnSignIn,
        bucket: "read",
        answers: authSessionForm,
        responses: { "200": "Who is signed in." },
      }),
    },
    async (call) => {
      const { user, session } = signedInOf(call);
      return resource(await readAuthSession(call.ctx, user, session));
    },
  ),
  del(
    "/auth/session",
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign out",
        access: ACCESS.endOwnSignIn,
        bucket: "write",
        answers: null,
        responses: { "204": "Signed out." },
      }),
    },
    async (call) => {
      const { user, session } = signedInOf(call);
      await signOut(call.ctx, user, session);
      return signedOut(call);
    },
  ),
  del(
    "/auth/sessions",
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Sign out everywhere",
        access: ACCESS.keepOwnSignIn,
        bucket: "write",
        answers: null,
        responses: { "204": "Signed out: this sign-in and all others of the person." },
      }),
    },
    async (call) => {
      await signOutEverywhere(call.ctx, signedInOf(call).user);
      return signedOut(call);
    },
  ),
  post(
    "/auth/password",
    {
      body: passwordBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Change one's password",
        access: ACCESS.keepOwnSignIn,
        bucket: "write",
        answers: null,
        responses: { "204": "Changed; the person's other sign-ins end.", "401": "not_authenticated" },
      }),
    },
    async (call) =>
      unlessThrottled(call, await changePassword(call.ctx, signedInOf(call), call.body, addressOf(call))),
  ),
  post(
    "/auth/password/reset",
    {
      body: passwordResetBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Choose a new password by a one-time link",
        access: null,
        bucket: "write",
        answers: null,
        responses: { "204": "Changed; all sign-ins of the person end.", "401": "not_authenticated" },
      }),
    },
    async (call) => unlessThrottled(call, await resetPassword(call.ctx, call.body, addressOf(call))),
  ),
];
