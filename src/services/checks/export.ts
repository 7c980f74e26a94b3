import { type CapsuleFacts, capsuleHashOf } from "../../core/capsule.ts";
import { checkHashOf, checkResource } from "../../core/check.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import type { CheckExport } from "../../resources/check-export.ts";
import type { Context } from "../context.ts";
import { fromCopy } from "../from-copy.ts";
import { schemasOf } from "./evaluate.ts";

/** A check with all that it was made from. Only the command line has all of it (docs/security, "Capsules"). */
export async function exportCheck(
  ctx: Context,
  { check_id: id }: { readonly check_id: string },
): Promise<CheckExport | Refusal> {
  const found = await fromCopy(ctx).store.read(async (reader) => {
    const check = await reader.checks.find(id);
    const warrant = check && (await reader.warrants.find(check.warrantId));
    if (!check || !warrant) return refuse("check_not_found", `There is no check ${id}.`);
    const capsule = await reader.capsules.get(id);
    const stored = capsule && (await reader.capsules.body(capsule));
    if (!capsule || (capsule.storedHash !== null && !stored)) {
      return refuse(
        "capsule_not_found",
        "The check's capsule is not kept: it was deleted after its days or to make room, or there was no space for it.",
      );
    }
    const schemas = await schemasOf(reader, warrant.organisationId, warrant.spec.clauses);
    return { check, warrant, capsule, stored, schemas };
  });
  if ("refused" in found) return found;
  const { check, warrant, capsule, stored, schemas } = found;
  const body = stored?.isCompressed ? await ctx.capsules.decompress(stored.bytes) : stored?.bytes;
  return {
    object: "check_export",
    check: checkResource(check),
    check_hash: checkHashOf(check),
    spec: warrant.spec,
    spec_hash: warrant.specHash,
    schemas,
    capsule: JSON.parse(capsule.facts) as CapsuleFacts,
    capsule_hash: capsuleHashOf(capsule),
    body: body ? Buffer.from(body).toString("base64") : null,
  };
}
