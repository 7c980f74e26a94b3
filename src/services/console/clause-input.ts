import { type ClauseKind, clauseModels } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { parseJsonText } from "../../core/json-text.ts";

/** The fields of a clause as a form has them, one input for each, and as the verbs take them. */

type Fields = Readonly<Record<string, string>>;

/** A field of a kind of clauses: its name, what it must be, and how its text is read. */
export type ClauseField = {
  readonly name: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly reads: "text" | "number" | "json";
};

export const clauseFieldsOf = (kind: ClauseKind): readonly ClauseField[] =>
  Object.entries(clauseModels[kind].properties)
    .filter(([name]) => name !== "kind")
    .map(([name, model]) => ({
      name,
      description: model.description ?? "",
      isRequired: clauseModels[kind].required?.includes(name) ?? false,
      reads: model.type === "string" ? "text" : model.type === undefined ? "json" : "number",
    }));

/** The clause's fields apart from its kind, from those of a form that are named `config.…`. What is left empty is not there. */
export function readConfig(kind: ClauseKind, fields: Fields): Readonly<Record<string, unknown>> | Refusal {
  const config: Record<string, unknown> = {};
  for (const { name, reads } of clauseFieldsOf(kind)) {
    const text = (fields[`config.${name}`] ?? "").trim();
    if (text === "") continue;
    if (reads === "json") {
      const read = readJsonField(text, `config.${name}`);
      if (isRefusal(read))
        return refuseField(`config.${name}`, 'must be JSON, such as 5, true or "a text" in quotes');
      config[name] = read.value;
    } else config[name] = reads === "number" ? numberOf(text) : text;
  }
  return config;
}

/** The fields of a form that has this config already. */
export const fieldsOfConfig = (kind: ClauseKind, config: Readonly<Record<string, unknown>>): Fields =>
  Object.fromEntries(
    clauseFieldsOf(kind)
      .filter(({ name }) => config[name] !== undefined)
      .map(({ name, reads }) => [
        `config.${name}`,
        reads === "json" ? JSON.stringify(config[name]) : String(config[name]),
      ]),
  );

/** What is no number stays a text, which the clause's own check refuses by its path. */
const numberOf = (text: string): number | string => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** A JSON text of a form, or why it is not JSON, with the name of its field. The value is wrapped: it may have a field `refused`. */
export function readJsonField(text: string, path: string): { readonly value: unknown } | Refusal {
  const parsed = parseJsonText(text);
  return "problem" in parsed ? refuseField(path, parsed.problem) : parsed;
}

/** `weather.v1` → weather.v2, and weather → weather.v2: a schema never changes, so a new version has a name of its own. */
export function nextName(name: string): string {
  const [, stem = name, version = "1"] = /^(.*)\.v(\d{1,9})$/.exec(name) ?? [];
  return `${stem}.v${Number(version) + 1}`;
}
