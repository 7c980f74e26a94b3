import { Elysia } from "elysia";
import { isRefusal, refuseField } from "../../core/errors.ts";
import { ACCESS } from "../../core/roles.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { listWarrants } from "../../services/warrants/list.ts";
import { openWarrant } from "../../services/warrants/open.ts";
import { readTrace, readWarrant } from "../../services/warrants/read.ts";
import { settleWarrant } from "../../services/warrants/settle.ts";
import { verifyWarrant } from "../../services/warrants/verify.ts";
import { respond, respondAnswer, respondWarrant } from "../answers.ts";
import { type Call, callerOf, intentOf } from "../call.ts";
import { refusalResponse } from "../errors.ts";
import { readIfMatch } from "../idempotency.ts";
import { listQuery, noBody, noQuery, openBody, partialBody, verifyBody } from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const tags = ["Warrants"];
const moves = { tags, idempotent: true, bucket: "write" } as const;
const MOVED = {
  "200": "The warrant.",
  "404": "warrant_not_found",
  "409": "illegal_transition, version_conflict, …",
};

/** A person settles directly; the three routes differ in the decision alone. */
async function settle(
  call: Call,
  request: Request,
  warrantId: string,
  decision: "release" | "partial_release" | "refund",
  releasedBps: number | null = null,
): Promise<Response> {
  const ifMatch = readIfMatch(request.headers);
  if (isRefusal(ifMatch)) return refusalResponse(call, ifMatch);
  const passkeyToken = request.headers.get("service-passkey");
  const input = { warrantId, decision, releasedBps, ifMatch, passkeyToken };
  return respondAnswer(call, await settleWarrant(call.ctx, callerOf(call), input, intentOf(call)));
}

/** `/v1/warrants` (interface.md, Warrant endpoints). */
export const warrantRoutes = new Elysia({ prefix: "/v1/warrants", aot: false, normalize: false })
  .use(withCall)
  .post(
    "",
    async ({ call, body }) =>
      respondAnswer(call, await openWarrant(call.ctx, callerOf(call), body, intentOf(call))),
    {
      body: openBody,
      query: noQuery,
      detail: route({
        ...moves,
        summary: "Open a warrant: hold its amount",
        access: ACCESS.openWarrant,
        responses: { "201": "The warrant, held.", "402": "insufficient_funds" },
      }),
    },
  )
  .get("", async ({ call, query }) => respond(call, await listWarrants(call.ctx, callerOf(call), query)), {
    query: listQuery,
    detail: route({
      tags,
      bucket: "read",
      summary: "List warrants",
      access: ACCESS.readWarrants,
      responses: { "200": "A page of warrants." },
    }),
  })
  .get(
    "/:id",
    async ({ call, params }) => respondWarrant(call, await readWarrant(call.ctx, callerOf(call), params.id)),
    {
      query: noQuery,
      detail: route({
        tags,
        bucket: "read",
        summary: "Read a warrant",
        access: ACCESS.readWarrants,
        responses: { "200": "The warrant.", "404": "warrant_not_found" },
      }),
    },
  )
  .get(
    "/:id/trace",
    async ({ call, params }) => respond(call, await readTrace(call.ctx, callerOf(call), params.id)),
    {
      query: noQuery,
      detail: route({
        tags,
        bucket: "read",
        summary: "Read a warrant's trace",
        access: ACCESS.readWarrants,
        responses: { "200": "The trace entries, in order.", "404": "warrant_not_found" },
      }),
    },
  )
  .post(
    "/:id/verify",
    async ({ call, request, params, body }) => {
      const problem = checkSourceUrl(body.source_url);
      if (problem !== null) return refusalResponse(call, refuseField("source_url", problem));
      const ifMatch = readIfMatch(request.headers);
      if (isRefusal(ifMatch)) return refusalResponse(call, ifMatch);
      const input = { warrantId: params.id, sourceUrl: body.source_url, ifMatch };
      return respondAnswer(call, await verifyWarrant(call.ctx, callerOf(call), input, intentOf(call)));
    },
    {
      body: verifyBody,
      query: noQuery,
      detail: route({
        ...moves,
        summary: "Fetch the deliverable, evaluate every clause, let the policy decide",
        access: ACCESS.verifyWarrant,
        responses: MOVED,
      }),
    },
  )
  .post("/:id/release", ({ call, request, params }) => settle(call, request, params.id, "release"), {
    body: noBody,
    query: noQuery,
    detail: route({ ...moves, summary: "Release in full", access: ACCESS.settleWarrant, responses: MOVED }),
  })
  .post(
    "/:id/partial",
    ({ call, request, params, body }) =>
      settle(call, request, params.id, "partial_release", body.released_bps),
    {
      body: partialBody,
      query: noQuery,
      detail: route({ ...moves, summary: "Release a share", access: ACCESS.settleWarrant, responses: MOVED }),
    },
  )
  .post("/:id/refund", ({ call, request, params }) => settle(call, request, params.id, "refund"), {
    body: noBody,
    query: noQuery,
    detail: route({ ...moves, summary: "Refund", access: ACCESS.settleWarrant, responses: MOVED }),
  });
