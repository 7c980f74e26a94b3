import { type ApiKey, endOf, hashSecret, newApiKeySecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Mode } from "../../core/roles.ts";
import { DAY_MS, SECOND_MS } from "../../core/time.ts";
import { apiKeyResource } from "../../resources/api-key.ts";
import { listResource } from "../../resources/list.ts";
import type { Reader } from "../../store/reader.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseInteger } from "../fields.ts";
import { ofScope, type PageOfList, pageOfList } from "../page-of-list.ts";
import { agentNotFound, findAgent } from "./agents.ts";
import { type Authority, administer, reaches, refuseAuthority, refuseOrganisation } from "./authority.ts";

const DAY_SECONDS = DAY_MS / SECOND_MS;
const OVERLAP_DEFAULT_SECONDS = DAY_SECONDS;
const OVERLAP_MAX_SECONDS = 30 * DAY_SECONDS;

type KeyResource = ReturnType<typeof apiKeyResource>;

export type NewApiKey = KeyResource & {
  /** The key itself, shown only here: only its hash is kept. */
  readonly secret: string;
};

/**
 * Draws the secret of a new key for an agent, in the agent's mode. The time of its creation comes from the
 * commit.
 */
function drawKey(
  ctx: Context,
  { agentId, organisationId, mode }: Pick<ApiKey, "agentId" | "organisationId" | "mode">,
): { readonly secret: string; readonly keyCreatedAt: (createdAt: number) => ApiKey } {
  const id = ctx.newId("apiKey");
  const secret = newApiKeySecret(mode, ctx.randomByte);
  const secretHash = hashSecret(secret);
  return {
    secret,
    keyCreatedAt: (createdAt) => ({
      id,
      organisationId,
      agentId,
      mode,
      secretHash,
      lastFour: secret.slice(-4),
      createdAt,
      expiresAt: null,
      lastUsedAt: null,
      revokedAt: null,
    }),
  };
}

/** Creates an API key of an agent, in the agent's mode. */
export async function createKey(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string },
): Promise<NewApiKey | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const agent = await ctx.store.read((reader) => findAgent(reader, authority, input.agent_id));
  if (isRefusal(agent)) return agent;
  const { secret, keyCreatedAt } = drawKey(ctx, { ...agent, agentId: agent.id });
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { agent: agent.id },
    decide: (snapshot, now): Audited<NewApiKey> => {
      if (!snapshot.agent) return { answer: agentNotFound(agent.id) };
      const key = keyCreatedAt(now);
      const resource = apiKeyResource(key);
      return {
        answer: { ...resource, secret },
        put: [{ kind: "apiKey", before: null, row: key }],
        entries: [{ action: "api_key.created", subject: key.id, before: null, after: resource }],
      };
    },
  });
}

type RotatedKey = NewApiKey & { readonly replaces: KeyResource };

/**
 * Replaces a key by a new one. Both work until the overlap is over; then the old one ends. A key that has
 * ended, or was replaced already, is refused with `api_key_not_active`.
 */
export async function rotateKey(
  ctx: Context,
  authority: Authority,
  input: {
    readonly key_id: string;
    /** 0 to 30 days, in seconds; one day by default. With 0 the old key ends at once. */
    readonly overlap_seconds?: number;
  },
): Promise<RotatedKey | Refusal> {
  const { overlap_seconds: overlapSeconds = OVERLAP_DEFAULT_SECONDS } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseInteger("overlap_seconds", overlapSeconds, 0, OVERLAP_MAX_SECONDS);
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findKey(reader, authority, input.key_id));
  if (isRefusal(known)) return known;
  const { secret, keyCreatedAt } = drawKey(ctx, known);
  return administer(ctx, authority, "admin", {
    scope: known,
    needs: { apiKey: known.id },
    decide: ({ apiKey: before }, now): Audited<RotatedKey> => {
      if (!before) return { answer: keyNotFound(known.id) };
      const ended = refuseRotation(before, now);
      if (ended) return { answer: ended };
      const key = keyCreatedAt(now);
      const after = { ...before, expiresAt: now + overlapSeconds * SECOND_MS };
      const resource = { ...apiKeyResource(key), replaces: apiKeyResource(after) };
      const entry = {
        action: "api_key.rotated",
        subject: before.id,
        before: apiKeyResource(before),
        after: resource,
      } as const;
      return {
        answer: { ...resource, secret },
        put: [
          { kind: "apiKey", before, row: after },
          { kind: "apiKey", before: null, row: key },
        ],
        entries: [entry],
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

/** Revokes an API key. A revoked key stays as it is. */
export async function revokeKey(
  ctx: Context,
  authority: Authority,
  input: { readonly key_id: string },
): Promise<KeyResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findKey(reader, authority, input.key_id));
  if (isRefusal(known)) return known;
  return administer(ctx, authority, "admin", {
    scope: known,
    needs: { apiKey: known.id },
    decide: ({ apiKey: before }, now): Audited<KeyResource> => {
      if (!before) return { answer: keyNotFound(known.id) };
      const was = apiKeyResource(before);
      if (before.revokedAt !== null) return { answer: was };
      const row = { ...before, revokedAt: now };
      const answer = apiKeyResource(row);
      return {
        answer,
        put: [{ kind: "apiKey", before, row }],
        entries: [{ action: "api_key.revoked", subject: before.id, before: was, after: answer }],
      };
    },
  });
}

/**
 * The keys of one agent, or of all agents of an organisation in one mode, oldest first. Keys that have ended
 * are included.
 */
export async function listKeys(
  ctx: Context,
  authority: Authority,
  input:
    | { readonly agent_id: string }
    | ({ readonly organisation_id: string; readonly mode: Mode } & PageOfList),
) {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    if ("agent_id" in input) {
      const agent = await findAgent(reader, authority, input.agent_id);
      if (isRefusal(agent)) return agent;
      const keys = await reader.apiKeys.list(agent);
      return listResource(keys.filter((key) => key.agentId === agent.id).map(apiKeyResource));
    }
    const { organisation_id: organisationId, mode } = input;
    const unknown = refuseOrganisation(authority, await reader.organisations.get(organisationId));
    if (unknown) return unknown;
    const scope = { organisationId, mode };
    const isReached = reaches(authority, scope);
    const page = await pageOfList(
      input,
      async (part) => (isReached ? reader.apiKeys.list(scope, part) : []),
      async (id) => ofScope(scope, await reader.apiKeys.get(id)),
    );
    return isRefusal(page) ? page : { ...listResource(page.rows.map(apiKeyResource)), ...page.more };
  });
}

/** The key with this id, where the authority may see it. */
export async function findKey(reader: Reader, authority: Authority, id: string): Promise<ApiKey | Refusal> {
  const key = await reader.apiKeys.get(id);
  return key && reaches(authority, key) ? key : keyNotFound(id);
}

const keyNotFound = (id: string): Refusal => refuse("api_key_not_found", `There is no API key ${id}.`);
