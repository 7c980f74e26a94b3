import { sha256 } from "../../core/canonical.ts";
import type { CapsuleFacts } from "../../core/capsule.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";

/** What people see of a body: longer ones would hold up the page, and nobody decides by them. */
const SHOWN_BYTES_MAX = 256 * 1024;

/** The body of a check's answer. */
export type KeptBody =
  | { readonly kind: "text"; readonly text: string }
  /** Longer than is shown, or no text. */
  | { readonly kind: "long" | "binary"; readonly bytes: number }
  | { readonly kind: "gone" };

/**
 * The body that a check of the caller's organisation and mode was made from, to who may decide on it; null to others, and where
 * nothing was read (docs/security, "Capsules").
 */
export async function readKeptBody(ctx: Context, caller: Caller, checkId: string): Promise<KeptBody | null> {
  if (refuseAccess(caller, ACCESS.resolveEscalation)) return null;
  const found = await ctx.store.read(async ({ capsules }) => {
    const capsule = await capsules.get(checkId);
    if (capsule?.organisationId !== caller.organisationId || capsule.mode !== caller.mode) return "gone";
    const facts = JSON.parse(capsule.facts) as CapsuleFacts;
    if (facts.bytes === 0 || facts.bytes > SHOWN_BYTES_MAX) return { facts, stored: null };
    const stored = await capsules.body(capsule);
    return stored ? { facts, stored } : "gone";
  });
  if (found === "gone") return { kind: "gone" };
  const { facts, stored } = found;
  if (facts.bytes === 0) return null;
  if (stored === null) return { kind: "long", bytes: facts.bytes };
  const body = stored.isCompressed ? await ctx.capsules.decompress(stored.bytes) : stored.bytes;
  if (sha256(body) !== facts.evidence_hash) return { kind: "gone" };
  const text = textOf(body);
  return text === null ? { kind: "binary", bytes: facts.bytes } : { kind: "text", text };
}

function textOf(body: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return null;
  }
}
