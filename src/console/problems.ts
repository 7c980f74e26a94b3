import type { Refusal } from "../core/errors.ts";
import type { Problems } from "./parts/forms.tsx";

/**
 * What is wrong, by the field that the refusal's message begins with; by no name where it is about the whole form.
 *
 * @param fields the fields that the form has
 */
export function problemsOf({ message }: Refusal, fields: readonly string[]): Problems {
  const [, name = "", entry, problem = message] = /^(\w+)(?:\.(\d+))?: (.*)$/s.exec(message) ?? [];
  if (!fields.includes(name)) return { "": message };
  return { [name]: entry === undefined ? problem : `entry ${Number(entry) + 1} ${problem}` };
}
