import { Elysia } from "elysia";
import { isRefusal } from "../../core/errors.ts";
import { ACCESS, type Access } from "../../core/roles.ts";
import { readKeys } from "../../services/admin/keys.ts";
import {
  readAgents,
  readAuditLog,
  readEscalations,
  readPolicies,
  readUsers,
  readVerifiers,
} from "../../services/console/read-backs.ts";
import { resolveEscalation } from "../../services/warrants/resolve.ts";
import { respond, respondAnswer } from "../answers.ts";
import { callerOf, intentOf } from "../call.ts";
import { refusalResponse } from "../errors.ts";
import { readIfMatch } from "../idempotency.ts";
import { auditLogQuery, noQuery, resolveBody } from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const tags = ["Console"];
const readBack = (summary: string, access: Access = ACCESS.readConsole) => ({
  query: noQuery,
  detail: route({
    tags,
    summary,
    bucket: "read",
    access,
    responses: { "200": "A list." },
  }),
});

/** `/v1/console` (interface.md, Console read-backs): for signed-in people. */
export const consoleRoutes = new Elysia({ prefix: "/v1/console", aot: false, normalize: false })
  .use(withCall)
  .get(
    "/verifiers",
    ({ call }) => respond(call, readVerifiers(call.ctx, callerOf(call))),
    readBack("Saved verifiers, and the registry of clause kinds"),
  )
  .get(
    "/agents",
    ({ call }) => respond(call, readAgents(call.ctx, callerOf(call))),
    readBack("Agents, with policy, session and warrant counts"),
  )
  .get(
    "/policies",
    ({ call }) => respond(call, readPolicies(call.ctx, callerOf(call))),
    readBack("Every policy version"),
  )
  .get(
    "/keys",
    ({ call }) => respond(call, readKeys(call.ctx, callerOf(call))),
    readBack("API keys: their last four characters and last use, never the secret", ACCESS.administer),
  )
  .get(
    "/users",
    ({ call }) => respond(call, readUsers(call.ctx, callerOf(call))),
    readBack("The organisation's people", ACCESS.administer),
  )
  .get("/audit-log", ({ call, query }) => respond(call, readAuditLog(call.ctx, callerOf(call), query)), {
    ...readBack("Every administrative act, newest first", ACCESS.administer),
    query: auditLogQuery,
  })
  .get(
    "/escalations",
    ({ call }) => respond(call, readEscalations(call.ctx, callerOf(call))),
    readBack("Escalations"),
  )
  .post(
    "/escalations/:id/resolve",
    async ({ call, request, params, body }) => {
      const ifMatch = readIfMatch(request.headers);
      if (isRefusal(ifMatch)) return refusalResponse(call, ifMatch);
      const input = {
        id: params.id,
        decision: body.decision,
        releasedBps: body.released_bps ?? null,
        note: body.note ?? null,
        ifMatch,
        passkeyToken: request.headers.get("service-passkey"),
      };
      return respondAnswer(call, await resolveEscalation(call.ctx, callerOf(call), input, intentOf(call)));
    },
    {
      body: resolveBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Decide an escalation, or pass it up",
        bucket: "write",
        idempotent: true,
        access: ACCESS.resolveEscalation,
        responses: { "200": "The escalation, with its warrant.", "404": "escalation_not_found" },
      }),
    },
  );
