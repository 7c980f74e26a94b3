import { algorithmOf, isSigstore, type SourceKey, thumbprintOf } from "../core/source-key.ts";
import { isoTime } from "../core/time.ts";

/** A key of a source, as the command line shows it. */
export const sourceKeyResource = (key: SourceKey) => ({
  id: key.id,
  object: "source_key" as const,
  organisation_id: key.organisationId,
  origin: key.origin,
  algorithm: isSigstore(key.signer) ? "sigstore" : algorithmOf(key.signer),
  thumbprint: thumbprintOf(key.signer),
  jwk: isSigstore(key.signer) ? null : key.signer,
  identity: isSigstore(key.signer) ? key.signer : null,
  created_at: isoTime(key.createdAt),
  removed_at: key.removedAt === null ? null : isoTime(key.removedAt),
});
