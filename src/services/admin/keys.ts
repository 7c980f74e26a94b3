import { hashSecret, newApiKeySecret } from "../../core/api-key.ts";
import type { ApiKey } from "../../core/directory.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Context } from "../context.ts";
import { apiKeyResource } from "../resources.ts";
import { agentNotFound, findAgent } from "./agents.ts";
import { type Authority, reaches, refuseAuthority } from "./authority.ts";

export type NewApiKey = ReturnType<typeof apiKeyResource> & {
  /** Shown this once: only its hash is kept. */
  readonly secret: string;
};

/** Creates an API key of an agent, in the agent's mode. */
export async function createKey(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string },
): Promise<NewApiKey | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const agent = findAgent(ctx, authority, input.agent_id);
  if (isRefusal(agent)) return agent;
  const secret = newApiKeySecret(agent.mode, ctx.randomByte);
  const key: ApiKey = {
    id: ctx.newId("apiKey"),
    organisationId: agent.organisationId,
    agentId: agent.id,
    mode: agent.mode,
    secretHash: hashSecret(secret),
    lastFour: secret.slice(-4),
    createdAt: ctx.now(),
    expiresAt: null,
    lastUsedAt: null,
    revokedAt: null,
  };
  return ctx.store.execute({
    scope: agent,
    needs: { agentId: agent.id },
    decide: (snapshot) =>
      snapshot.agent
        ? { answer: { ...apiKeyResource(key), secret }, change: { rows: [{ kind: "apiKey", row: key }] } }
        : { answer: agentNotFound(agent.id) },
  });
}

/** Revokes an API key. One that is revoked already stays as it is. */
export async function revokeKey(
  ctx: Context,
  authority: Authority,
  input: { readonly key_id: string },
): Promise<ReturnType<typeof apiKeyResource> | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const notFound = refuse("api_key_not_found", `There is no API key ${input.key_id}.`);
  const known = ctx.store.reader.apiKeys.get(input.key_id);
  if (!known || !reaches(authority, known)) return notFound;
  const now = ctx.now();
  return ctx.store.execute({
    scope: known,
    needs: { apiKeyId: known.id },
    decide: ({ apiKey }) => {
      if (!apiKey) return { answer: notFound };
      if (apiKey.revokedAt !== null) return { answer: apiKeyResource(apiKey) };
      const after = { ...apiKey, revokedAt: now };
      return { answer: apiKeyResource(after), change: { rows: [{ kind: "apiKey", row: after }] } };
    },
  });
}
