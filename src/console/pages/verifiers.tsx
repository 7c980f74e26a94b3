/** @jsxImportSource hono/jsx */
import { CLAUSE_KINDS, type ClauseKind, clauseTemplates, isClauseKind } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import type { SavedVerifier } from "../../core/verifier.ts";
import { createVerifier } from "../../services/admin/verifiers.ts";
import {
  type ClauseField,
  clauseFieldsOf,
  fieldsOfConfig,
  nextName,
  readConfig,
} from "../../services/console/clause-input.ts";
import { listVerifiers, readVerifier } from "../../services/console/saved-clauses.ts";
import { Card, Empty, Facts, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { ClauseKinds } from "../parts/clause-kinds.tsx";
import { ClauseHead } from "../parts/clause-tabs.tsx";
import { Seen } from "../parts/evidence.tsx";
import { Id, Sentence, Text, Time } from "../parts/figures.tsx";
import { Area, Choose, Field, Form, type Problems } from "../parts/forms.tsx";
import { NameField } from "../parts/name-fields.tsx";
import type { Submission, Visit } from "../route.ts";

/** Verifiers: clauses that are saved under a name, so that warrants can refer to them. */

type OfVerifier = { readonly id: string };
type Fields = Readonly<Record<string, string>>;

const NEW = "/console/verifiers/new";

export async function showVerifiers(visit: Visit) {
  const after = visit.search.get("after");
  const listed = await listVerifiers(visit.ctx, visit.caller, after);
  if (isRefusal(listed)) return listed;
  const { verifiers, next } = listed;
  const isAdmin = roleIsAtLeast(visit.caller.role, "admin");
  return {
    title: "Verifiers",
    section: "verifiers",
    content: (
      <>
        <ClauseHead visit={visit} current="/console/verifiers" make={{ path: NEW, words: "Save a clause" }} />
        <div id="verifiers" data-live="verifiers">
          <Card>
            {verifiers.length === 0 ? (
              <Empty title="No clause is saved yet">
                <p>A warrant that names a saved clause has it added to its own.</p>
                {isAdmin ? (
                  <a class="button primary" href={NEW}>
                    Save the first one
                  </a>
                ) : null}
              </Empty>
            ) : (
              <Table
                label="Verifiers"
                columns={["Name", "Kind", "Saved"]}
                rows={verifiers.map((one) => [
                  <a href={`/console/verifiers/${one.id}`}>
                    <Text of={one.name} />
                  </a>,
                  <code>{one.type}</code>,
                  <Time at={one.createdAt} />,
                ])}
              />
            )}
            <Pager
              newer={after === null ? null : "/console/verifiers"}
              older={next === null ? null : `/console/verifiers?after=${next}`}
            />
          </Card>
        </div>
      </>
    ),
  } as const;
}

/** The clause that a verifier stands for. */
export const clauseOf = ({ type, config }: SavedVerifier) => ({ kind: type, ...config });

export async function showVerifier(visit: Visit<OfVerifier>) {
  const verifier = await readVerifier(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(verifier)) return verifier;
  const about = clauseTemplates.find(({ kind }) => kind === verifier.type)?.description ?? "";
  return {
    title: `Verifier ${verifier.name}`,
    section: "verifiers",
    content: (
      <>
        <Head
          title={<Text of={verifier.name} />}
          about={<Sentence of={about} />}
          actions={
            <>
              <a class="button" href={`/console/bench?verifier=${verifier.id}`}>
                Try it on the bench
              </a>
              {roleIsAtLeast(visit.caller.role, "admin") ? (
                <a class="button" href={`${NEW}?from=${verifier.id}`}>
                  Draft {nextName(verifier.name)}
                </a>
              ) : null}
              {roleIsAtLeast(visit.caller.role, "operator") ? (
                <a class="button primary" href={`/console/warrants/new?verifier=${verifier.id}`}>
                  Open a warrant with it
                </a>
              ) : null}
            </>
          }
        />
        {visit.search.get("done") === "saved" ? <Notice kind="done">The clause is saved.</Notice> : null}
        <Card title="The clause" aside={<a href="/docs/clauses">All kinds, with examples</a>}>
          <Seen of={clauseOf(verifier)} />
          <Facts
            of={[
              ["Id", <Id of={verifier.id} />],
              ["Saved", <Time at={verifier.createdAt} />],
            ]}
          />
          <p class="hint">
            It never changes and is never deleted, since warrants name it. To change it, save another one: the
            form begins with this clause.
          </p>
        </Card>
      </>
    ),
  } as const;
}

/** A new version begins with the clause of the one before, under the next name. */
export async function showNewVerifier(visit: Visit) {
  const { search } = visit;
  const from = search.get("from");
  if (from === null) {
    const fields = { type: search.get("type") ?? "", name: search.get("name") ?? "" };
    return newVerifierPage(visit, fields, null);
  }
  const verifier = await readVerifier(visit.ctx, visit.caller, from);
  if (isRefusal(verifier)) return verifier;
  const { type, name, config } = verifier;
  return newVerifierPage(visit, { ...fieldsOfConfig(type, config), type, name: nextName(name) }, null);
}

const problemsOf = ({ message }: Refusal): Problems => {
  const [, path = "", problem = message] = /^([\w.]+): (.*)$/s.exec(message) ?? [];
  return { [path]: problem };
};

function newVerifierPage(visit: Visit, fields: Fields, refusal: Refusal | null) {
  const kind: ClauseKind = isClauseKind(fields.type) ? fields.type : "http.status";
  const problems = refusal ? problemsOf(refusal) : {};
  const known = ["name", ...clauseFieldsOf(kind).map(({ name }) => `config.${name}`)];
  const isElsewhere = refusal !== null && !known.some((name) => problems[name]);
  return {
    title: "Save a clause",
    section: "verifiers",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Save a clause"
          about="It never changes, so warrants that name it always mean the same."
        />
        <div class="columns">
          <Card>
            <KindForm kind={kind} name={fields.name ?? ""} />
            <div id="clause">
              <Form
                by={visit}
                action="/console/verifiers"
                label="Save a clause"
                problem={isElsewhere ? refusal.message : undefined}
              >
                <input type="hidden" name="type" value={kind} />
                {clauseFieldsOf(kind).map((field) => (
                  <ConfigField
                    field={field}
                    value={fields[`config.${field.name}`]}
                    problem={problems[`config.${field.name}`]}
                  />
                ))}
                <NameField value={fields.name} problem={problems.name} hint="What people choose it by." />
                <button type="submit" class="primary">
                  Save the clause
                </button>
              </Form>
            </div>
          </Card>
          <ClauseKinds />
        </div>
      </>
    ),
  } as const;
}

/** Each kind has fields of its own: another choice shows them, at once where the script runs. */
const KindForm = ({ kind, name }: { kind: ClauseKind; name: string }) => (
  <form
    class="inline at-each-change"
    method="get"
    action={NEW}
    aria-label="Kind"
    hx-get={NEW}
    hx-trigger="change"
    hx-target="#clause"
    hx-select="#clause"
    hx-swap="outerHTML"
  >
    <Choose
      name="type"
      label="Kind"
      value={kind}
      choices={CLAUSE_KINDS.map((one) => ({ value: one, words: one }))}
    />
    <input type="hidden" name="name" value={name} />
    <button type="submit">Show its fields</button>
  </form>
);

const ConfigField = ({
  field: { name, description, isRequired, reads },
  value,
  problem,
}: {
  field: ClauseField;
  value: string | undefined;
  problem: string | undefined;
}) => {
  const about = {
    name: `config.${name}`,
    label: name,
    required: isRequired,
    hint: `${description[0]?.toUpperCase()}${description.slice(1)}${isRequired ? "." : ". It may stay empty."}`,
    ...{ value, problem },
  };
  return reads === "text" && name === "rubric" ? (
    <Area {...about} />
  ) : (
    <Field {...about} attributes={{ autocomplete: "off", spellcheck: "false" }} />
  );
};

export async function sendVerifier(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const type = fields.type as ClauseKind;
  const config = isClauseKind(type) ? readConfig(type, fields) : {};
  const saved = isRefusal(config)
    ? config
    : await createVerifier(ctx, caller, {
        organisation_id: caller.organisationId,
        ...{ type, config, name: fields.name ?? "" },
      });
  if (isRefusal(saved)) return newVerifierPage(submission, fields, saved);
  return { to: `/console/verifiers/${saved.id}?done=saved` };
}
