import type { TSchema } from "@sinclair/typebox";
import { isRefusal, refuseField } from "../../core/errors.ts";
import type { Form } from "../../core/form.ts";
import { ACCESS } from "../../core/roles.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { checkListForm } from "../../resources/check.ts";
import { noBody, noQuery } from "../../resources/input.ts";
import { traceListForm } from "../../resources/trace-entry.ts";
import {
  listQuery,
  openBody,
  partialBody,
  verifyBody,
  warrantForm,
  warrantListForm,
} from "../../resources/warrant.ts";
import { listWarrants } from "../../services/warrants/list.ts";
import { openWarrant } from "../../services/warrants/open.ts";
import { readChecks, readTrace, readWarrant } from "../../services/warrants/read.ts";
import { settleWarrant } from "../../services/warrants/settle.ts";
import { verifyWarrant } from "../../services/warrants/verify.ts";
import { type Result, resource, warrant } from "../answers.ts";
import { type Call, callerOf, idempotencyOf } from "../call.ts";
import { readIfMatch } from "../idempotency.ts";
import { get, post, type Route, route } from "../route.ts";

const tags = ["Warrants"];
const moves = { tags, idempotent: true, bucket: "write" } as const;
const MOVED = {
  "200": "The warrant.",
  "404": "warrant_not_found",
  "409": "illegal_transition, version_conflict, …",
};

const readsOne = (summary: string, answers: Form, found: string) => ({
  query: noQuery,
  detail: route({
    tags,
    bucket: "read",
    summary,
    access: ACCESS.readWarrants,
    answers,
    responses: { "200": found, "404": "warrant_not_found" },
  }),
});

const settles = <Body extends TSchema>(summary: string, body: Body) => ({
  body,
  query: noQuery,
  detail: route({
    ...moves,
    decides: true,
    summary,
    access: ACCESS.settleWarrant,
    answers: warrantForm,
    responses: MOVED,
  }),
});

/** A person settles directly. The three routes differ in the decision only. */
function settle(
  call: Call<unknown, unknown, { readonly id: string }>,
  decision: "release" | "partial_release" | "refund",
  releasedBps: number | null = null,
): Result | Promise<Result> {
  const ifMatch = readIfMatch(call.headers);
  if (isRefusal(ifMatch)) return ifMatch;
  const passkeyToken = call.headers.get("service-passkey");
  const input = {
    warrantId: call.params.id,
    ...{ decision, releasedBps, passkeyToken },
    ifMatch: ifMatch ?? call.versionSeen,
  };
  return settleWarrant(call.ctx, callerOf(call), input, idempotencyOf(call));
}

/** `/v1/warrants`. */
export const warrantRoutes: readonly Route[] = [
  post(
    "/v1/warrants",
    {
      body: openBody,
      query: noQuery,
      detail: route({
        ...moves,
        summary: "Open a warrant: hold its amount",
        access: ACCESS.openWarrant,
        answers: warrantForm,
        responses: { "201": "The warrant, held.", "402": "insufficient_funds" },
      }),
    },
    (call) => openWarrant(call.ctx, callerOf(call), call.body, idempotencyOf(call)),
  ),
  get(
    "/v1/warrants",
    {
      query: listQuery,
      detail: route({
        tags,
        bucket: "read",
        summary: "List warrants",
        access: ACCESS.readWarrants,
        answers: warrantListForm,
        responses: { "200": "A page of warrants." },
      }),
    },
    async (call) => resource(await listWarrants(call.ctx, callerOf(call), call.query)),
  ),
  get("/v1/warrants/:id", readsOne("Read a warrant", warrantForm, "The warrant."), async (call) =>
    warrant(await readWarrant(call.ctx, callerOf(call), call.params.id)),
  ),
  get(
    "/v1/warrants/:id/trace",
    readsOne("Read a warrant's trace", traceListForm, "The trace entries, in order."),
    async (call) => resource(await readTrace(call.ctx, callerOf(call), call.params.id)),
  ),
  get(
    "/v1/warrants/:id/checks",
    readsOne("Read a warrant's checks", checkListForm, "The checks, newest first."),
    async (call) => resource(await readChecks(call.ctx, callerOf(call), call.params.id)),
  ),
  post(
    "/v1/warrants/:id/verify",
    {
      body: verifyBody,
      query: noQuery,
      detail: route({
        ...moves,
        summary: "Fetch the deliverable, evaluate every clause, let the policy decide",
        access: ACCESS.verifyWarrant,
        answers: warrantForm,
        responses: MOVED,
      }),
    },
    (call) => {
      const sourceUrl = call.body.source_url;
      const problem = checkSourceUrl(sourceUrl);
      if (problem !== null) return refuseField("source_url", problem);
      const ifMatch = readIfMatch(call.headers);
      if (isRefusal(ifMatch)) return ifMatch;
      const input = { warrantId: call.params.id, sourceUrl, ifMatch };
      return verifyWarrant(call.ctx, callerOf(call), input, idempotencyOf(call), call.left());
    },
  ),
  post("/v1/warrants/:id/release", settles("Release in full", noBody), (call) => settle(call, "release")),
  post("/v1/warrants/:id/partial", settles("Release a share", partialBody), (call) =>
    settle(call, "partial_release", call.body.released_bps),
  ),
  post("/v1/warrants/:id/refund", settles("Refund", noBody), (call) => settle(call, "refund")),
];
