import { Elysia } from "elysia";
import { isRefusal } from "../../core/errors.ts";
import { ACCESS } from "../../core/roles.ts";
import { approveDecision, challengeDecision } from "../../services/auth/passkeys/approve.ts";
import { listPasskeys } from "../../services/auth/passkeys/list.ts";
import { beginRegistration, finishRegistration } from "../../services/auth/passkeys/register.ts";
import { removePasskey } from "../../services/auth/passkeys/remove.ts";
import { beginPasskeySignIn, signInByPasskey } from "../../services/auth/passkeys/sign-in.ts";
import { respond } from "../answers.ts";
import { callerOf } from "../call.ts";
import { refusalResponse } from "../errors.ts";
import {
  assertionBody,
  decisionBody,
  noBody,
  noQuery,
  passkeyBody,
  passkeyOptionsBody,
  passkeySignInBody,
} from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";
import { respondSignIn, respondThrottled } from "./auth.ts";

const tags = ["Passkeys"];
const own = { tags, access: ACCESS.keepOwnSignIn } as const;
const signsIn = { tags, access: null, bucket: "write" } as const;
const approves = { tags, access: ACCESS.settleWarrant, bucket: "write" } as const;

/** `/auth/passkeys` and `/auth/passkey` (decisions.md, Sign-in, roles, passkeys). */
export const passkeyRoutes = new Elysia({ prefix: "/auth", aot: false, normalize: false })
  .use(withCall)
  .post(
    "/passkeys/options",
    async ({ call, body }) => {
      const options = await beginRegistration(call.ctx, callerOf(call), body, call.address());
      return isRefusal(options) ? respondThrottled(call, options) : respond(call, options);
    },
    {
      body: passkeyOptionsBody,
      query: noQuery,
      detail: route({
        ...own,
        bucket: "write",
        summary: "Begin to register a passkey",
        responses: { "200": "Options for navigator.credentials.create.", "403": "passkey_unavailable" },
      }),
    },
  )
  .post(
    "/passkeys",
    async ({ call, body }) => respond(call, await finishRegistration(call.ctx, callerOf(call), body), 201),
    {
      body: passkeyBody,
      query: noQuery,
      detail: route({
        ...own,
        bucket: "write",
        summary: "Register the passkey that the browser made",
        responses: { "201": "The passkey." },
      }),
    },
  )
  .get("/passkeys", async ({ call }) => respond(call, await listPasskeys(call.ctx, callerOf(call))), {
    query: noQuery,
    detail: route({
      ...own,
      bucket: "read",
      summary: "List one's own passkeys",
      responses: { "200": "Oldest first." },
    }),
  })
  .delete(
    "/passkeys/:id",
    async ({ call, params }) => {
      const refused = await removePasskey(call.ctx, callerOf(call), params.id);
      return refused ? refusalResponse(call, refused) : new Response(null, { status: 204 });
    },
    {
      body: noBody,
      query: noQuery,
      detail: route({
        ...own,
        bucket: "write",
        summary: "Remove a passkey",
        responses: { "204": "Removed.", "404": "passkey_not_found" },
      }),
    },
  )
  .post(
    "/passkey/sign-in/options",
    ({ call }) => respond(call, beginPasskeySignIn(call.ctx, call.address())),
    {
      body: noBody,
      query: noQuery,
      detail: route({
        ...signsIn,
        summary: "Begin to sign in by passkey",
        responses: { "200": "Options for navigator.credentials.get.", "403": "passkey_unavailable" },
      }),
    },
  )
  .post(
    "/passkey/sign-in",
    async ({ call, body }) => respondSignIn(call, await signInByPasskey(call.ctx, body, call.address())),
    {
      body: passkeySignInBody,
      query: noQuery,
      detail: route({
        ...signsIn,
        summary: "Sign a person in by passkey",
        responses: { "201": "Who is signed in; the cookie is set.", "401": "not_authenticated" },
      }),
    },
  )
  .post(
    "/passkey/challenge",
    async ({ call, body }) => {
      const input = {
        warrantId: body.warrant_id,
        version: body.version,
        decision: body.decision,
        releasedBps: body.released_bps ?? null,
      };
      return respond(call, await challengeDecision(call.ctx, callerOf(call), input));
    },
    {
      body: decisionBody,
      query: noQuery,
      detail: route({
        ...approves,
        summary: "Begin to sign a decision on a warrant",
        responses: { "200": "Options for navigator.credentials.get.", "403": "passkey_unavailable" },
      }),
    },
  )
  .post(
    "/passkey/assertion",
    async ({ call, body }) => respond(call, await approveDecision(call.ctx, callerOf(call), body), 201),
    {
      body: assertionBody,
      query: noQuery,
      detail: route({
        ...approves,
        summary: "Turn the signature into a token for that decision",
        responses: { "201": "The token, for Service-Passkey: good once, within 120 seconds." },
      }),
    },
  );
