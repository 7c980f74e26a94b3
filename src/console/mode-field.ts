import { type Refusal, refuse, refuseField } from "../core/errors.ts";
import type { PersonCaller } from "../core/roles.ts";

/** The field of a form that says in which mode it was made. */
export const MODE_FIELD = "_mode";

/** A person may switch modes in another window. A form that was made before would then act in the other one. */
export function refuseOtherMode(
  { mode }: Pick<PersonCaller, "mode">,
  fields: Readonly<Record<string, string>>,
): Refusal | null {
  const made = fields[MODE_FIELD];
  if (made === mode) return null;
  if (made === undefined) return refuseField(MODE_FIELD, "is required; open the form again");
  return refuse(
    "validation_failed",
    `This form was opened in ${made}, and you are in ${mode} now. Nothing was done: open it again.`,
  );
}
