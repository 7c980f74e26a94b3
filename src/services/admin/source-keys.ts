import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { parseOrigin } from "../../core/session-limits.ts";
import {
  parseIdentity,
  parsePublicJwk,
  type Signer,
  SOURCE_KEYS_MAX,
  SOURCE_KEYS_OF_ORIGIN_MAX,
  type SourceKey,
  thumbprintOf,
} from "../../core/source-key.ts";
import { listResource } from "../../resources/list.ts";
import { sourceKeyResource } from "../../resources/source-key.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { type Authority, administer, refuseAuthority, refuseOrganisation } from "./authority.ts";

type SourceKeyResource = ReturnType<typeof sourceKeyResource>;

const TOO_MANY = `has ${SOURCE_KEYS_OF_ORIGIN_MAX} keys already; remove one that is no longer used`;

/** Registers who signs the answers of an origin: a key, or an identity of Sigstore (docs/security, "Signed sources"). */
export async function addSourceKey(
  ctx: Context,
  authority: Authority,
  input: {
    readonly organisation_id: string;
    readonly origin: string;
    /** A public key as JWK, or the two fields of an identity of Sigstore instead. */
    readonly key?: unknown;
    readonly issuer?: unknown;
    readonly subject?: unknown;
  },
): Promise<SourceKeyResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const origin = parseOrigin("origin", input.origin);
  if (isRefusal(origin)) return origin;
  if (origin.endsWith("*")) return refuseField("origin", "must be one origin, without *");
  const signer = signerIn(input);
  if (isRefusal(signer)) return signer;
  const id = ctx.newId("sourceKey");
  const { organisation_id: organisationId } = input;
  return administer(ctx, authority, "admin", {
    scope: { organisationId, mode: "live" },
    needs: { sourceKeys: true },
    decide({ sourceKeys }, now): Audited<SourceKeyResource> {
      const ofOrigin = sourceKeys.filter((key) => key.origin === origin);
      if (ofOrigin.some((key) => thumbprintOf(key.signer) === thumbprintOf(signer)))
        return { answer: refuseField("key", `is registered for ${origin} already`) };
      if (ofOrigin.length >= SOURCE_KEYS_OF_ORIGIN_MAX) return { answer: refuseField("origin", TOO_MANY) };
      if (sourceKeys.length >= SOURCE_KEYS_MAX)
        return {
          answer: refuseField("key", `is one too many: an organisation has ${SOURCE_KEYS_MAX} at most`),
        };
      const row: SourceKey = { id, organisationId, origin, signer, createdAt: now, removedAt: null };
      const answer = sourceKeyResource(row);
      return {
        answer,
        put: [{ kind: "sourceKey", before: null, row }],
        entries: [{ action: "source_key.added", subject: id, before: null, after: answer }],
      };
    },
  });
}

function signerIn({ key, issuer, subject }: Parameters<typeof addSourceKey>[2]): Signer | Refusal {
  if (issuer === undefined && subject === undefined) return parsePublicJwk("key", key);
  return key === undefined
    ? parseIdentity(issuer, subject)
    : refuseField("key", "must be left out where issuer and subject are given");
}

/** Removes a key: later answers that it signs count as observed. What was recorded with it stays. */
export async function removeSourceKey(
  ctx: Context,
  authority: Authority,
  { source_key_id: id }: { readonly source_key_id: string },
): Promise<SourceKeyResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const key = await ctx.store.read((reader) => reader.sourceKeys.get(id));
  const notFound = refuse("source_key_not_found", `There is no source key ${id}, or it was removed.`);
  if (!key || refuseOrganisation(authority, { id: key.organisationId })) return notFound;
  return administer(ctx, authority, "admin", {
    scope: { organisationId: key.organisationId, mode: "live" },
    needs: { sourceKeys: true },
    decide({ sourceKeys }, now): Audited<SourceKeyResource> {
      const before = sourceKeys.find((each) => each.id === id);
      if (!before) return { answer: notFound };
      const row: SourceKey = { ...before, removedAt: now };
      const answer = sourceKeyResource(row);
      return {
        answer,
        put: [{ kind: "sourceKey", before, row }],
        entries: [
          { action: "source_key.removed", subject: id, before: sourceKeyResource(before), after: answer },
        ],
      };
    },
  });
}

/** An organisation's keys of sources that were not removed, in the order of their ids. */
export function listSourceKeys(
  ctx: Context,
  authority: Authority,
  { organisation_id: organisationId }: { readonly organisation_id: string },
) {
  return ctx.store.read(async (reader) => {
    const refused =
      refuseAuthority(authority, "viewer") ??
      refuseOrganisation(authority, await reader.organisations.get(organisationId));
    if (refused) return refused;
    return listResource((await reader.sourceKeys.list(organisationId)).map(sourceKeyResource));
  });
}
