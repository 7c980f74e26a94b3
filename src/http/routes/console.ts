import { isRefusal } from "../../core/errors.ts";
import type { Form } from "../../core/form.ts";
import { ACCESS, type Access } from "../../core/roles.ts";
import { agentListForm } from "../../resources/agent.ts";
import { apiKeyListForm } from "../../resources/api-key.ts";
import { auditLogForm } from "../../resources/audit-log.ts";
import { escalationListForm, resolveBody, resolvedEscalationForm } from "../../resources/escalation.ts";
import { noQuery } from "../../resources/input.ts";
import { pageQuery } from "../../resources/list.ts";
import { policyListForm } from "../../resources/policy.ts";
import { userListForm } from "../../resources/user.ts";
import { verifierListForm } from "../../resources/verifier.ts";
import { webhookListForm } from "../../resources/webhook.ts";
import { listAgents } from "../../services/admin/agents.ts";
import { showAuditLog } from "../../services/admin/audit-log.ts";
import { listKeys } from "../../services/admin/keys.ts";
import { listUsers } from "../../services/admin/users.ts";
import { listWebhooks } from "../../services/admin/webhooks.ts";
import type { PageOfList } from "../../services/page-of-list.ts";
import { readEscalations, readPolicies, readVerifiers } from "../../services/read-backs.ts";
import { resolveEscalation } from "../../services/warrants/resolve.ts";
import { resource } from "../answers.ts";
import { type Call, callerOf, idempotencyOf } from "../call.ts";
import { readIfMatch } from "../idempotency.ts";
import { get, post, type Route, route } from "../route.ts";

const tags = ["Console"];
const readBack = (summary: string, answers: Form, access: Access = ACCESS.readConsole) => ({
  query: pageQuery,
  detail: route({
    tags,
    summary,
    bucket: "read",
    access,
    answers,
    responses: { "200": "A list; with `limit` a page of it." },
  }),
});

/** The caller's organisation and mode, and the page that is asked for, in the form of the verbs that the command line uses too. */
function inputOf(call: Call<unknown, PageOfList>) {
  const { organisationId, mode } = callerOf(call);
  return { organisation_id: organisationId, mode, ...call.query };
}

/** `/v1/console`: what signed-in people read and decide. */
export const consoleRoutes: readonly Route[] = [
  get(
    "/v1/console/verifiers",
    readBack("Saved verifiers, and the registry of clause kinds", verifierListForm),
    async (call) => resource(await readVerifiers(call.ctx, callerOf(call), call.query)),
  ),
  get(
    "/v1/console/agents",
    readBack("Agents, with policy, session and warrant counts", agentListForm),
    async (call) => resource(await listAgents(call.ctx, callerOf(call), inputOf(call))),
  ),
  get("/v1/console/policies", readBack("Every policy version", policyListForm), async (call) =>
    resource(await readPolicies(call.ctx, callerOf(call), call.query)),
  ),
  get(
    "/v1/console/keys",
    readBack(
      "API keys: their last four characters and last use, never the secret",
      apiKeyListForm,
      ACCESS.administer,
    ),
    async (call) => resource(await listKeys(call.ctx, callerOf(call), inputOf(call))),
  ),
  get(
    "/v1/console/users",
    readBack("The organisation's people", userListForm, ACCESS.administer),
    async (call) => resource(await listUsers(call.ctx, callerOf(call), inputOf(call))),
  ),
  get(
    "/v1/console/audit-log",
    readBack("The audit log, newest first", auditLogForm, ACCESS.administer),
    async (call) => resource(await showAuditLog(call.ctx, callerOf(call), inputOf(call))),
  ),
  get("/v1/console/escalations", readBack("Escalations", escalationListForm), async (call) =>
    resource(await readEscalations(call.ctx, callerOf(call), call.query)),
  ),
  get(
    "/v1/console/webhooks",
    readBack("Webhook endpoints, and their 50 most recent deliveries", webhookListForm, ACCESS.administer),
    async (call) => resource(await listWebhooks(call.ctx, callerOf(call), inputOf(call))),
  ),
  post(
    "/v1/console/escalations/:id/resolve",
    {
      body: resolveBody,
      query: noQuery,
      detail: route({
        tags,
        summary: "Decide an escalation, or pass it up",
        bucket: "write",
        idempotent: true,
        decides: true,
        access: ACCESS.resolveEscalation,
        answers: resolvedEscalationForm,
        responses: { "200": "The escalation, with its warrant.", "404": "escalation_not_found" },
      }),
    },
    (call) => {
      const ifMatch = readIfMatch(call.headers);
      if (isRefusal(ifMatch)) return ifMatch;
      const input = {
        id: call.params.id,
        decision: call.body.decision,
        releasedBps: call.body.released_bps ?? null,
        note: call.body.note ?? null,
        ifMatch: ifMatch ?? call.versionSeen,
        passkeyToken: call.headers.get("service-passkey"),
      };
      return resolveEscalation(call.ctx, callerOf(call), input, idempotencyOf(call));
    },
  ),
];
