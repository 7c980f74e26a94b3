import type { Section } from "./markdown.ts";

/** The API reference: the OpenAPI document as a page, which runs no script and loads nothing. */

const { escapeHTML } = Bun;

/** Markup whose variable parts have been escaped. */
type Html = string;

/** The parts of JSON Schema that the service's own forms use. */
export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
};

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

export type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
};

export type OpenApi = {
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

type Row = { readonly name: string; readonly schema: Schema; readonly required: boolean };

const CALLERS: Readonly<Record<string, string>> = {
  apiKey: "an agent's API key",
  session: "a signed-in person",
  worker: "the operator's worker",
  messaging: "the bot API",
};

const code = (text: string): Html => `<code>${escapeHTML(text)}</code>`;
const objectId = (name: string): string => `object-${name}`;
const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

export function apiReference(document: OpenApi): {
  readonly body: Html;
  readonly sections: readonly Section[];
} {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      title: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
  const tags = document.tags.map(({ name }) => name);
  const groups = tags.map((tag) => {
    const ofTag = operations.filter(({ operation }) => operation.tags.includes(tag));
    return `${heading(2, slugOf(tag), escapeHTML(tag))}\n${ofTag.map(operationOf).join("\n")}`;
  });
  const objects = Object.entries(document.components.schemas).map(
    ([name, schema]) => `${heading(3, objectId(name), code(name))}\n${schemaOf(schema)}`,
  );
  const chapters = [...tags, "Objects"].map(
    (tag) => `<li><a href="#${slugOf(tag)}">${escapeHTML(tag)}</a></li>`,
  );
  return {
    body: `<p>Every request that the service answers, with its fields, as the running service describes itself. The same
for programs is <a href="/openapi.json">openapi.json</a>, and with examples in many languages <a
href="/docs/api-reference/interactive">the interactive reference</a>, which needs a script. What holds for all requests is on the page about
<a href="/docs/idempotency">requests</a>; every code is on the page about <a href="/docs/api-reference/errors">errors</a>.</p>
<details class="inside" open><summary>On this page</summary>
<ul>
${chapters.join("\n")}
</ul>
</details>
${groups.join("\n")}
${heading(2, "objects", "Objects")}
${objects.join("\n")}`,
    sections: operations.map(({ title, operation }) => ({
      id: operation.operationId,
      title,
      text: `${operation.summary}. ${bodyRows(operation)
        .map(({ name }) => name)
        .join(" ")}`,
    })),
  };
}

const slugOf = (tag: string): string => tag.toLowerCase().replaceAll(" ", "-");

const heading = (level: 2 | 3, id: string, html: Html): Html =>
  `<h${level} id="${escapeHTML(id)}"><a href="#${escapeHTML(id)}">${html}</a></h${level}>`;

function operationOf({ title, operation }: { readonly title: string; readonly operation: Operation }): Html {
  const { operationId, summary, security, parameters = [] } = operation;
  const callers = security.flatMap((entry) => Object.keys(entry).map((name) => CALLERS[name] ?? name));
  const given = parameters.map(({ name, in: where, required, description, schema }) =>
    rowOf({
      name: `${name} (${where})`,
      required,
      schema: { ...schema, ...(description && { description }) },
    }),
  );
  const body = bodyRows(operation).map(rowOf);
  const answers = Object.entries(operation.responses).flatMap(([status, { description, content }]) =>
    description === undefined ? [] : [`<li>${code(status)} ${answerOf(description, content)}</li>`],
  );
  return [
    heading(3, operationId, code(title)),
    `<p>${escapeHTML(summary)}. Called by ${callers.length === 0 ? "anybody" : callers.join(" or ")}.</p>`,
    given.length === 0 ? "" : table("Parameter", given),
    body.length === 0 ? "" : table("Field of the body", body),
    `<ul>\n${answers.join("\n")}\n</ul>`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function answerOf(description: string, content: Content | undefined): Html {
  const [[type, media] = []] = Object.entries(content ?? {});
  if (type === undefined || media === undefined) return escapeHTML(description);
  return `${escapeHTML(description)} <span class="quiet">${media.schema.$ref ? typeOf(media.schema) : escapeHTML(type)}</span>`;
}

const bodyRows = ({ requestBody }: Operation): readonly Row[] =>
  Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => rowsOf(schema, ""));

/** The fields of an object, and of the objects in it; those of a named object are in its own section. */
function rowsOf(schema: Schema, prefix: string): readonly Row[] {
  const inside = schema.type === "array" && schema.items ? schema.items : schema;
  const path = inside === schema ? prefix : `${prefix.replace(/\.$/, "")}[].`;
  return Object.entries(inside.properties ?? {}).flatMap(([name, field]) => [
    { name: `${path}${name}`, schema: field, required: inside.required?.includes(name) ?? false },
    ...rowsOf(field, `${path}${name}.`),
  ]);
}

function schemaOf(schema: Schema): Html {
  const described = schema.description === undefined ? "" : `<p>${escapeHTML(schema.description)}</p>\n`;
  const rows = rowsOf(schema, "").map(rowOf);
  return described + (rows.length === 0 ? `<p>${typeOf(schema)}</p>` : table("Field", rows));
}

const table = (first: string, rows: readonly Html[]): Html =>
  `<div class="wide" tabindex="0"><table>
<thead><tr><th>${first}</th><th>Type</th><th></th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table></div>`;

const rowOf = ({ name, schema, required }: Row): Html =>
  `<tr><td>${code(name)}</td><td>${typeOf(schema)}${required ? "" : ", optional"}</td><td>${noteOf(schema)}</td></tr>`;

/** The type in words, such as "string or null"; a named object is a link to its section. */
function typeOf(schema: Schema): Html {
  if (schema.$ref !== undefined)
    return `<a href="#${objectId(nameOf(schema.$ref))}">${escapeHTML(nameOf(schema.$ref))}</a>`;
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  const types = [schema.type ?? "any value"].flat();
  if (schema.items !== undefined)
    return `array of ${typeOf(schema.items)}${types.includes("null") ? " or null" : ""}`;
  return escapeHTML(types.join(" or "));
}

function noteOf({ description, enum: values, minimum, maximum }: Schema): Html {
  const notes = [
    ...(description === undefined ? [] : [escapeHTML(description)]),
    ...(values === undefined ? [] : [`One of ${values.map((value) => code(String(value))).join(", ")}.`]),
    ...(minimum === undefined ? [] : [`At least ${minimum}.`]),
    ...(maximum === undefined ? [] : [`At most ${maximum}.`]),
  ];
  return notes.join(" ");
}
