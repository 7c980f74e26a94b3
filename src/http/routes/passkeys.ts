import { isRefusal } from "../../core/errors.ts";
import { ACCESS } from "../../core/roles.ts";
import { authSessionForm } from "../../resources/auth-session.ts";
import { noBody, noQuery } from "../../resources/input.ts";
import {
  approvalForm,
  assertionBody,
  correctionApprovalBody,
  creationOptionsForm,
  decisionBody,
  ownPasswordBody,
  passkeyBody,
  passkeyForm,
  passkeyListForm,
  passkeySignInBody,
  payoutsBody,
  requestOptionsForm,
} from "../../resources/passkey.ts";
import { challengeCorrection, challengePayouts } from "../../services/admin/signatures.ts";
import { approveDecision, challengeDecision } from "../../services/auth/passkeys/approve.ts";
import { listPasskeys } from "../../services/auth/passkeys/list.ts";
import { beginRegistration, finishRegistration } from "../../services/auth/passkeys/register.ts";
import { removePasskey } from "../../services/auth/passkeys/remove.ts";
import { beginPasskeySignIn, signInByPasskey } from "../../services/auth/passkeys/sign-in.ts";
import { json, resource } from "../answers.ts";
import { callerOf, clientOfCall, networkOfClient } from "../call.ts";
import { get, post, type Route, route } from "../route.ts";
import { refuseThrottled, signedIn, unlessThrottled } from "./auth.ts";

const tags = ["Passkeys"];
const own = { tags, access: ACCESS.keepOwnSignIn } as const;
const registers = { tags, access: ACCESS.registerPasskey, bucket: "write" } as const;
const signsIn = { tags, access: null, bucket: "write" } as const;
const administers = { tags, access: ACCESS.administer, bucket: "write" } as const;
const approves = { tags, access: ACCESS.settleWarrant, bucket: "write" } as const;

/** `/auth/passkeys` and `/auth/passkey` (docs/people, "Passkeys"). */
export const passkeyRoutes: readonly Route[] = [
  post(
    "/auth/passkeys/options",
    {
      body: ownPasswordBody,
      query: noQuery,
      detail: route({
        ...registers,
        summary: "Begin to register a passkey",
        answers: creationOptionsForm,
        responses: { "200": "Options for navigator.credentials.create.", "403": "passkey_unavailable" },
      }),
    },
    async (call) => {
      const options = await beginRegistration(call.ctx, callerOf(call), call.body, clientOfCall(call));
      return isRefusal(options) ? refuseThrottled(call, options) : json(options);
    },
  ),
  post(
    "/auth/passkeys",
    {
      body: passkeyBody,
      query: noQuery,
      detail: route({
        ...registers,
        summary: "Register the passkey that the browser made",
        answers: passkeyForm,
        responses: { "201": "The passkey." },
      }),
    },
    async (call) => resource(await finishRegistration(call.ctx, callerOf(call), call.body), 201),
  ),
  get(
    "/auth/passkeys",
    {
      query: noQuery,
      detail: route({
        ...own,
        bucket: "read",
        summary: "List one's own passkeys",
        answers: passkeyListForm,
        responses: { "200": "Oldest first." },
      }),
    },
    async (call) => resource(await listPasskeys(call.ctx, callerOf(call))),
  ),
  post(
    "/auth/passkeys/:id/remove",
    {
      body: ownPasswordBody,
      query: noQuery,
      detail: route({
        ...own,
        bucket: "write",
        summary: "Remove a passkey",
        answers: null,
        responses: { "204": "Removed.", "401": "not_authenticated", "404": "passkey_not_found" },
      }),
    },
    async (call) => {
      const input = { id: call.params.id, password: call.body.password };
      return unlessThrottled(call, await removePasskey(call.ctx, callerOf(call), input, clientOfCall(call)));
    },
  ),
  post(
    "/auth/passkey/sign-in/options",
    {
      body: noBody,
      query: noQuery,
      detail: route({
        ...signsIn,
        summary: "Begin to sign in by passkey",
        answers: requestOptionsForm,
        responses: { "200": "Options for navigator.credentials.get.", "403": "passkey_unavailable" },
      }),
    },
    async (call) => resource(await beginPasskeySignIn(call.ctx, networkOfClient(call))),
  ),
  post(
    "/auth/passkey/sign-in",
    {
      body: passkeySignInBody,
      query: noQuery,
      detail: route({
        ...signsIn,
        summary: "Sign a person in by passkey",
        answers: authSessionForm,
        responses: { "201": "Who is signed in; the cookie is set.", "401": "not_authenticated" },
      }),
    },
    async (call) => signedIn(call, await signInByPasskey(call.ctx, call.body, clientOfCall(call)), "passkey"),
  ),
  post(
    "/auth/passkey/challenge",
    {
      body: decisionBody,
      query: noQuery,
      detail: route({
        ...approves,
        summary: "Begin to sign a decision on a warrant",
        answers: requestOptionsForm,
        responses: { "200": "Options for navigator.credentials.get.", "403": "passkey_unavailable" },
      }),
    },
    async (call) => {
      const { warrant_id: warrantId, version, decision, released_bps: releasedBps = null } = call.body;
      const input = { warrantId, version, decision, releasedBps };
      return resource(await challengeDecision(call.ctx, callerOf(call), input));
    },
  ),
  post(
    "/auth/passkey/corrections/challenge",
    {
      body: correctionApprovalBody,
      query: noQuery,
      detail: route({
        ...administers,
        summary: "Begin to sign the approval of a correction",
        answers: requestOptionsForm,
        responses: {
          "200": "Options for navigator.credentials.get.",
          "403": "passkey_unavailable",
          "404": "correction_not_found",
        },
      }),
    },
    async (call) => resource(await challengeCorrection(call.ctx, callerOf(call), call.body)),
  ),
  post(
    "/auth/passkey/payouts/challenge",
    {
      body: payoutsBody,
      query: noQuery,
      detail: route({
        ...administers,
        summary: "Begin to sign payouts",
        answers: requestOptionsForm,
        responses: {
          "200": "Options for navigator.credentials.get.",
          "403": "passkey_unavailable",
          "409": "version_conflict",
        },
      }),
    },
    async (call) => resource(await challengePayouts(call.ctx, callerOf(call), call.body)),
  ),
  post(
    "/auth/passkey/assertion",
    {
      body: assertionBody,
      query: noQuery,
      detail: route({
        ...approves,
        summary: "Turn the signature into a token for that decision",
        answers: approvalForm,
        responses: {
          "201": "The token, for Service-Passkey or a form of the console: good once, within 120 seconds.",
        },
      }),
    },
    async (call) => resource(await approveDecision(call.ctx, callerOf(call), call.body), 201),
  ),
];
