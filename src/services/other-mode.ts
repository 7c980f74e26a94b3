import type { Refusal } from "../core/errors.ts";
import { isId } from "../core/ids.ts";
import type { Caller } from "../core/roles.ts";
import type { Reader } from "../store/reader.ts";
import type { Scope } from "../store/scope.ts";
import type { Context } from "./context.ts";

/** What has a mode, and is named by its id in a path or a body. */
const FINDERS = {
  warrant: (reader: Reader, id: string) => reader.warrants.find(id),
  agent: (reader: Reader, id: string) => reader.agents.get(id),
  escalation: (reader: Reader, id: string) => reader.escalations.get(id),
} as const satisfies Partial<Record<string, (reader: Reader, id: string) => Promise<Scope | null>>>;
type Found = keyof typeof FINDERS;

/**
 * A 404, which also says where one of these ids is in the other mode of the caller's own organisation. A key of the wrong mode
 * is the most common cause, and of other organisations it says nothing.
 */
export async function sayOtherMode(
  ctx: Context,
  caller: Caller,
  refusal: Refusal,
  ids: readonly unknown[],
): Promise<Refusal> {
  const named = ids.flatMap((id) =>
    (Object.keys(FINDERS) as Found[]).flatMap((noun) =>
      typeof id === "string" && isId(noun, id) ? [{ noun, id }] : [],
    ),
  );
  if (named.length === 0) return refusal;
  return ctx.store.read((reader) => sayOtherModeOf(reader, caller, refusal, named));
}

/** The same from a snapshot that was taken already. */
export async function sayOtherModeOf(
  reader: Reader,
  { organisationId, mode }: Caller,
  refusal: Refusal,
  named: readonly { readonly noun: Found; readonly id: string }[],
): Promise<Refusal> {
  for (const { noun, id } of named) {
    const found = await FINDERS[noun](reader, id);
    if (found?.organisationId === organisationId && found.mode !== mode)
      return {
        ...refusal,
        message: `${refusal.message} Your organisation has ${id} in ${found.mode}; this request is ${mode}.`,
      };
  }
  return refusal;
}
