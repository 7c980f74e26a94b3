import type { SignInMeans } from "../../core/auth-session.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Budget } from "../../core/rate.ts";
import { ACCESS } from "../../core/roles.ts";
import { authSessionForm, signInBody } from "../../resources/auth-session.ts";
import { noBody, noQuery } from "../../resources/input.ts";
import { passwordBody, passwordResetBody } from "../../resources/password.ts";
import { signInListForm, signInsEndedForm } from "../../resources/sign-in.ts";
import { endSignInsOf, listSignIns } from "../../services/admin/sign-ins.ts";
import { triedBy } from "../../services/auth/attempt.ts";
import { SESSION_MAX_MS } from "../../services/auth/callers.ts";
import { changePassword, resetPassword } from "../../services/auth/password.ts";
import {
  type AfterSignIn,
  afterSignIn,
  type NewSession,
  readAuthSession,
  signIn,
  signOut,
  signOutEverywhere,
} from "../../services/auth/sign-in.ts";
import { endOwnSignIn, listOwnSignIns } from "../../services/auth/sign-ins.ts";
import { type Answer, json, noContent, type Result, resource } from "../answers.ts";
import { type Call, callerOf, clientOfCall, signedInOf } from "../call.ts";
import { sessionCookie } from "../caller.ts";
import { del, get, post, type Route, route } from "../route.ts";

const tags = ["Sign-in"];

/** After too many failed sign-ins, the headers describe the window of failed sign-ins, not that of the bucket. */
const throttledBudget = (call: Call, by: SignInMeans): Budget => ({
  ...call.ctx.signInThrottle.budgetOf(triedBy(by, clientOfCall(call)), call.ctx.now()),
  remaining: 0,
  exceeded: true,
});

/** The refusal of a verb that counts failed sign-ins, with the window of these failures in the headers. */
export function refuseThrottled(call: Call, refusal: Refusal, by: SignInMeans = "password"): Refusal {
  if (refusal.refused === "rate_limit_exceeded") call.budget = throttledBudget(call, by);
  return refusal;
}

/** 201 with the session and its cookie, or the refusal. */
export async function signedIn(
  call: Call,
  session: NewSession | Refusal,
  by: AfterSignIn["by"],
): Promise<Result> {
  if (isRefusal(session)) return refuseThrottled(call, session, by);
  await afterSignIn(call.ctx, session, { by, client: clientOfCall(call), replaced: call.signedIn });
  const cookie = sessionCookie(session.token, call.ctx.baseUrl, SESSION_MAX_MS / 1_000);
  return { ...json(session.resource, 201), headers: { "Set-Cookie": cookie } };
}

export const signedOut = ({ ctx }: Call): Answer =>
  noContent({ "Set-Cookie": sessionCookie(null, ctx.baseUrl, 0) });

/** 204, or the refusal. */
export const unlessThrottled = (call: Call, refusal: Refusal | null): Result =>
  refusal ? refuseThrottled(call, refusal) : noContent();

const endsSignIns = (summary: string) => ({
  body: noBody,
  query: noQuery,
  detail: route({
    tags,
    summary,
    access: ACCESS.administer,
    bucket: "write",
    answers: signInsEndedForm,
    responses: { "200": "Which ones ended.", "404": "user_not_found, sign_in_not_found" },
  }),
});

const endedSignIns = async (call: Call, input: Parameters<typeof endSignInsOf>[2]): Promise<Result> =>
  resource(await endSignInsOf(call.ctx, callerOf(call), input, clientOfCall(call)));

/** `/auth/session` and what belongs to it (docs/people, "People and authority"). */
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
        // A try may wait for half a minute, and its body counts for so long.
        bodyBytesMax: 8 * 1024,
        answers: authSessionForm,
        responses: { "201": "Who is signed in; the cookie is set.", "401": "not_authenticated" },
      }),
    },
    async (call) => signedIn(call, await signIn(call.ctx, call.body, clientOfCall(call)), "password"),
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
      await signOut(call.ctx, signedInOf(call), clientOfCall(call));
      return signedOut(call);
    },
  ),
  get(
    "/auth/sessions",
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "List one's own sign-ins",
        access: ACCESS.keepOwnSignIn,
        bucket: "read",
        answers: signInListForm,
        responses: { "200": "Those that have not ended, a hundred at most, the last to end first." },
      }),
    },
    async (call) => resource(await listOwnSignIns(call.ctx, signedInOf(call).caller)),
  ),
  del(
    "/auth/sessions/:id",
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "End one of one's own sign-ins",
        access: ACCESS.keepOwnSignIn,
        bucket: "write",
        answers: null,
        responses: { "204": "Ended.", "404": "sign_in_not_found" },
      }),
    },
    async (call) => {
      const { caller } = signedInOf(call);
      const ended = await endOwnSignIn(call.ctx, caller, call.params.id, clientOfCall(call));
      if (isRefusal(ended)) return ended;
      return ended.current ? signedOut(call) : noContent();
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
      await signOutEverywhere(call.ctx, signedInOf(call).user, clientOfCall(call));
      return signedOut(call);
    },
  ),
  get(
    "/auth/users/:id/sessions",
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "List a person's sign-ins",
        access: ACCESS.administer,
        bucket: "read",
        answers: signInListForm,
        responses: { "200": "As those of one's own.", "404": "user_not_found" },
      }),
    },
    async (call) => resource(await listSignIns(call.ctx, callerOf(call), { user_id: call.params.id })),
  ),
  del("/auth/users/:id/sessions", endsSignIns("End all sign-ins of a person"), (call) =>
    endedSignIns(call, { user_id: call.params.id }),
  ),
  del("/auth/users/:id/sessions/:session", endsSignIns("End one sign-in of a person"), (call) =>
    endedSignIns(call, { user_id: call.params.id, sign_in_id: call.params.session }),
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
      unlessThrottled(call, await changePassword(call.ctx, signedInOf(call), call.body, clientOfCall(call))),
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
    async (call) => unlessThrottled(call, await resetPassword(call.ctx, call.body, clientOfCall(call))),
  ),
];
