import type { ApiKey } from "../../core/api-key.ts";
import { endOf, hashSecret, newApiKeySecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Mode } from "../../core/roles.ts";
import { DAY_MS, SECOND_MS } from "../../core/time.ts";
import type { Context } from "../context.ts";
import { apiKeyResource, listResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import { agentNotFound, findAgent } from "./agents.ts";
import { type Authority, administer, reaches, refuseAuthority, refuseOrganisation } from "./authority.ts";
import { refuseInteger } from "./fields.ts";

const DAY_SECONDS = DAY_MS / SECOND_MS;
const OVERLAP_DEFAULT_SECONDS = DAY_SECONDS;
const OVERLAP_MAX_SECONDS = 30 * DAY_SECONDS;

type KeyResource = ReturnType<typeof apiKeyResource>;

export type NewApiKey = KeyResource & {
  /** Shown this once: only its hash is kept. */
  readonly secret: string;
};

/** A key and its secret, in the world of an agent or of another of its keys. */
function newKey(
  ctx: Context,
  { agentId, organisationId, mode }: Pick<ApiKey, "agentId" | "organisationId" | "mode">,
): { readonly key: ApiKey; readonly secret: string } {
  const secret = newApiKeySecret(mode, ctx.randomByte);
  const key: ApiKey = {
    id: ctx.newId("apiKey"),
    organisationId,
    agentId,
    mode,
    secretHash: hashSecret(secret),
    lastFour: secret.slice(-4),
    createdAt: ctx.now(),
    expiresAt: null,
    lastUsedAt: null,
    revokedAt: null,
  };
  return { key, secret };
}

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
  const { key, secret } = newKey(ctx, { ...agent, agentId: agent.id });
  const recorded = recordingAct(ctx, authority, "api_key.created");
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { agentId: agent.id },
    decide: (snapshot) => {
      if (!snapshot.agent) return { answer: agentNotFound(agent.id) };
      const resource = apiKeyResource(key);
      const act = recorded(key.organisationId, key.id, null, resource);
      return { answer: { ...resource, secret }, change: { rows: [{ kind: "apiKey", row: key }, act] } };
    },
  });
}

/**
 * Puts a new key beside an old one, which ends after the overlap: in between either calls. A key is replaced once; one that
 * has ended, or is being replaced, is `api_key_not_active`.
 */
export async function rotateKey(
  ctx: Context,
  authority: Authority,
  input: {
    readonly key_id: string;
    /** From 0, which ends the old key at once, to 30 days; without it, one day. */
    readonly overlap_seconds?: number;
  },
): Promise<(NewApiKey & { readonly replaces: KeyResource }) | Refusal> {
  const { overlap_seconds: overlapSeconds = OVERLAP_DEFAULT_SECONDS } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseInteger("overlap_seconds", overlapSeconds, 0, OVERLAP_MAX_SECONDS);
  if (refused) return refused;
  const known = findKey(ctx, authority, input.key_id);
  if (isRefusal(known)) return known;
  const { key, secret } = newKey(ctx, known);
  const now = key.createdAt;
  const recorded = recordingAct(ctx, authority, "api_key.rotated");
  return administer(ctx, authority, "admin", {
    scope: known,
    needs: { apiKeyId: known.id },
    decide: ({ apiKey: before }) => {
      if (!before) return { answer: keyNotFound(known.id) };
      const ended = refuseRotation(before, now);
      if (ended) return { answer: ended };
      const after = { ...before, expiresAt: now + overlapSeconds * SECOND_MS };
      const resource = { ...apiKeyResource(key), replaces: apiKeyResource(after) };
      return {
        answer: { ...resource, secret },
        change: {
          rows: [
            { kind: "apiKey", row: after },
            { kind: "apiKey", row: key },
            recorded(key.organisationId, before.id, apiKeyResource(before), resource),
          ],
        },
      };
    },
  });
}

function refuseRotation(key: ApiKey, now: number): Refusal | null {
  const end = endOf(key, now);
  if (end) {
    const how = end === "revoked" ? "was revoked" : "has expired";
    return refuse("api_key_not_active", `The API key ${key.id} ${how}; create a new one.`);
  }
  return key.expiresAt === null
    ? null
    : refuse("api_key_not_active", `The API key ${key.id} is being replaced already; rotate the newer one.`);
}

/** Revokes an API key. One that is revoked already stays as it is. */
export async function revokeKey(
  ctx: Context,
  authority: Authority,
  input: { readonly key_id: string },
): Promise<KeyResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = findKey(ctx, authority, input.key_id);
  if (isRefusal(known)) return known;
  const now = ctx.now();
  const recorded = recordingAct(ctx, authority, "api_key.revoked");
  return administer(ctx, authority, "admin", {
    scope: known,
    needs: { apiKeyId: known.id },
    decide: ({ apiKey: before }) => {
      if (!before) return { answer: keyNotFound(known.id) };
      if (before.revokedAt !== null) return { answer: apiKeyResource(before) };
      const after = { ...before, revokedAt: now };
      const answer = apiKeyResource(after);
      const act = recorded(before.organisationId, before.id, apiKeyResource(before), answer);
      return { answer, change: { rows: [{ kind: "apiKey", row: after }, act] } };
    },
  });
}

/** The keys of one agent, or of all agents of an organisation in one mode, oldest first; those that have ended too. */
export async function listKeys(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string } | { readonly organisation_id: string; readonly mode: Mode },
) {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const { apiKeys, organisations } = ctx.store.reader;
  if ("agent_id" in input) {
    const agent = findAgent(ctx, authority, input.agent_id);
    if (isRefusal(agent)) return agent;
    return listResource(
      apiKeys
        .list(agent)
        .filter((key) => key.agentId === agent.id)
        .map(apiKeyResource),
    );
  }
  const { organisation_id: organisationId, mode } = input;
  const unknown = refuseOrganisation(authority, organisations.get(organisationId));
  if (unknown) return unknown;
  const keys = apiKeys.list({ organisationId, mode }).filter((key) => reaches(authority, key));
  return listResource(keys.map(apiKeyResource));
}

/** The key of an id, where the authority reaches it. */
function findKey(ctx: Context, authority: Authority, id: string): ApiKey | Refusal {
  const key = ctx.store.reader.apiKeys.get(id);
  return key && reaches(authority, key) ? key : keyNotFound(id);
}

const keyNotFound = (id: string): Refusal => refuse("api_key_not_found", `There is no API key ${id}.`);
