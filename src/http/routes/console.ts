import { Elysia } from "elysia";
import { isRefusal } from "../../core/errors.ts";
import { ACCESS, type Access } from "../../core/roles.ts";
import { listAgents } from "../../services/admin/agents.ts";
import { showAuditLog } from "../../services/admin/audit-log.ts";
import { listKeys } from "../../services/admin/keys.ts";
import { listUsers } from "../../services/admin/users.ts";
import { listWebhooks } from "../../services/admin/webhooks.ts";
import { readEscalations, readPolicies, readVerifiers } from "../../services/read-backs.ts";
import { resolveEscalation } from "../../services/warrants/resolve.ts";
import { respond, respondAnswer } from "../answers.ts";
import { type Call, callerOf, intentOf } from "../call.ts";
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

/** The organisation and mode of whoever calls, as the verbs that the command line has too take them. */
function scopeOf(call: Call) {
  const { organisationId, mode } = callerOf(call);
  return { organisation_id: organisationId, mode };
}

/** `/v1/console` (interface.md, Console read-backs): for signed-in people. */
export const consoleRoutes = new Elysia({ prefix: "/v1/console", aot: false, normalize: false })
  .use(withCall)
  .get(
    "/verifiers",
    async ({ call }) => respond(call, await readVerifiers(call.ctx, callerOf(call))),
    readBack("Saved verifiers, and the registry of clause kinds"),
  )
  .get(
    "/agents",
    async ({ call }) => respond(call, await listAgents(call.ctx, callerOf(call), scopeOf(call))),
    readBack("Agents, with policy, session and warrant counts"),
  )
  .get(
    "/policies",
    async ({ call }) => respond(call, await readPolicies(call.ctx, callerOf(call))),
    readBack("Every policy version"),
  )
  .get(
    "/keys",
    async ({ call }) => respond(call, await listKeys(call.ctx, callerOf(call), scopeOf(call))),
    readBack("API keys: their last four characters and last use, never the secret", ACCESS.administer),
  )
  .get(
    "/users",
    async ({ call }) => respond(call, await listUsers(call.ctx, callerOf(call), scopeOf(call))),
    readBack("The organisation's people", ACCESS.administer),
  )
  .get(
    "/audit-log",
    async ({ call, query }) =>
      respond(call, await showAuditLog(call.ctx, callerOf(call), { ...query, ...scopeOf(call) })),
    {
      ...readBack("Every administrative act, newest first", ACCESS.administer),
      query: auditLogQuery,
    },
  )
  .get(
    "/escalations",
    async ({ call }) => respond(call, await readEscalations(call.ctx, callerOf(call))),
    readBack("Escalations"),
  )
  .get(
    "/webhooks",
    async ({ call }) => respond(call, await listWebhooks(call.ctx, callerOf(call), scopeOf(call))),
    readBack("Webhook endpoints, and their 50 most recent deliveries", ACCESS.administer),
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
