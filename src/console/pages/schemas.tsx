/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { createSchema } from "../../services/admin/schemas.ts";
import { BUILT_IN_NAMES } from "../../services/built-in-schemas.ts";
import { nextName, readJsonField } from "../../services/console/clause-input.ts";
import { listSchemas, readSchema } from "../../services/console/saved-clauses.ts";
import { Card, Empty, Facts, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { ClauseHead } from "../parts/clause-tabs.tsx";
import { Seen } from "../parts/evidence.tsx";
import { Id, Time } from "../parts/figures.tsx";
import { Area, Field, Form } from "../parts/forms.tsx";
import type { Submission, Visit } from "../route.ts";

/** Named JSON Schemas. None changes: a new version is another one, whose name counts on. */

type OfSchema = { readonly id: string };
type Fields = Readonly<Record<string, string>>;

const NEW = "/console/schemas/new";

const EXAMPLE = `{
  "type": "object",
  "required": ["temperature"],
  "properties": { "temperature": { "type": "number" } }
}`;

export async function showSchemas(visit: Visit) {
  const after = visit.search.get("after") ?? "";
  const listed = await listSchemas(visit.ctx, visit.caller, after);
  if (isRefusal(listed)) return listed;
  const { schemas, next } = listed;
  const isAdmin = roleIsAtLeast(visit.caller.role, "admin");
  return {
    title: "Schemas",
    section: "verifiers",
    content: (
      <>
        <ClauseHead visit={visit} current="/console/schemas" make={{ path: NEW, words: "Save a schema" }} />
        <div id="schemas" data-live="schemas">
          <Card>
            {schemas.length === 0 ? (
              <Empty title="No schema is saved yet">
                <p>A clause of the kind json.schema names one, and the body must be as it says.</p>
                {isAdmin ? (
                  <a class="button primary" href={NEW}>
                    Save the first one
                  </a>
                ) : null}
              </Empty>
            ) : (
              <Table
                label="Schemas"
                columns={["Name", "Hash", "Saved"]}
                wide={["Hash"]}
                rows={schemas.map((one) => [
                  <a href={`/console/schemas/${one.id}`}>{one.name}</a>,
                  <Id of={one.schemaHash.slice(0, 16)} />,
                  <Time at={one.createdAt} />,
                ])}
              />
            )}
            <Pager
              newer={after === "" ? null : "/console/schemas"}
              older={next === null ? null : `/console/schemas?after=${encodeURIComponent(next)}`}
            />
          </Card>
        </div>
        <p class="quiet">Built in, where you have none of that name: {BUILT_IN_NAMES.join(", ")}.</p>
      </>
    ),
  } as const;
}

export async function showSchema(visit: Visit<OfSchema>) {
  const schema = await readSchema(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(schema)) return schema;
  return {
    title: `Schema ${schema.name}`,
    section: "verifiers",
    content: (
      <>
        <Head
          title={schema.name}
          about="It never changes, so a clause that names it always means this."
          actions={
            <>
              <a class="button" href={`/console/bench?schema=${schema.name}`}>
                Try it on the bench
              </a>
              {roleIsAtLeast(visit.caller.role, "admin") ? (
                <a class="button primary" href={`${NEW}?from=${schema.id}`}>
                  Draft {nextName(schema.name)}
                </a>
              ) : null}
            </>
          }
        />
        {visit.search.get("done") === "saved" ? <Notice kind="done">The schema is saved.</Notice> : null}
        <Card title="The schema">
          <Seen of={schema.schema} whole />
          <Facts
            of={[
              ["Id", <Id of={schema.id} />],
              ["Hash", <Id of={schema.schemaHash} />],
              ["Saved", <Time at={schema.createdAt} />],
            ]}
          />
          <p class="hint">
            It never changes and is never deleted, since clauses name it. To change it, draft the next one:
            the form begins with this schema.
          </p>
        </Card>
      </>
    ),
  } as const;
}

/** A new version begins with the schema of the one before, under the next name. */
export async function showNewSchema(visit: Visit) {
  const from = visit.search.get("from");
  if (from === null) return newSchemaPage(visit, { schema: EXAMPLE }, null);
  const schema = await readSchema(visit.ctx, visit.caller, from);
  if (isRefusal(schema)) return schema;
  const fields = { name: nextName(schema.name), schema: JSON.stringify(schema.schema, null, 2) };
  return newSchemaPage(visit, fields, null);
}

function newSchemaPage(visit: Visit, fields: Fields, refusal: Refusal | null) {
  const [, path = "", problem = refusal?.message] =
    /^(name|schema)[\w./]*: (.*)$/s.exec(refusal?.message ?? "") ?? [];
  return {
    title: "Save a schema",
    section: "verifiers",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Save a schema"
          about="JSON Schema 2020-12, or draft-07 where $schema says so. It never changes afterwards."
        />
        <Card>
          <Form
            by={visit}
            action="/console/schemas"
            label="Save a schema"
            problem={path === "" ? problem : undefined}
          >
            <Field
              name="name"
              label="Name"
              required
              value={fields.name}
              problem={path === "name" ? problem : undefined}
              hint="By which clauses refer to it, such as weather.v1."
              attributes={{ maxlength: "128", autocomplete: "off", spellcheck: "false" }}
            />
            <Area
              name="schema"
              label="Schema"
              required
              value={fields.schema}
              problem={path === "schema" ? problem : undefined}
              attributes={{ class: "code", spellcheck: "false" }}
            />
            <p>
              <button type="submit" class="primary">
                Save the schema
              </button>
            </p>
          </Form>
        </Card>
      </>
    ),
  } as const;
}

export async function sendSchema(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const { name = "", schema = "" } = fields;
  const parsed = readJsonField(schema, "schema");
  const saved = isRefusal(parsed)
    ? parsed
    : await createSchema(ctx, caller, {
        organisation_id: caller.organisationId,
        name: name.trim(),
        schema: parsed.value,
      });
  if (isRefusal(saved)) return newSchemaPage(submission, fields, saved);
  return { to: `/console/schemas/${saved.id}?done=saved` };
}
