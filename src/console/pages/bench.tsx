/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { readClauses, readDeliverable } from "../../services/console/bench-input.ts";
import { readVerifier } from "../../services/console/saved-clauses.ts";
import { type Tried, tryOnBody, tryOnUrl } from "../../services/console/try-clauses.ts";
import { outcomeWords } from "../parts/bands.tsx";
import { Card, Facts } from "../parts/blocks.tsx";
import { ClauseHead } from "../parts/clause-tabs.tsx";
import { Explained } from "../parts/explained.tsx";
import { Badge, Id, percent, Text } from "../parts/figures.tsx";
import { Area, Field, Form, type Problems } from "../parts/forms.tsx";
import type { Visit } from "../route.ts";
import { clauseOf } from "./verifiers.tsx";

/** The bench: clauses are tried on what a URL answers now, or on a body that is pasted. Nothing is held or recorded. */

type Fields = Readonly<Record<string, string>>;

const EXAMPLE: Fields = {
  clauses: `[
  { "kind": "http.status", "equals": 200 },
  { "kind": "json.jsonpath", "path": "$.report", "equals": "done" }
]`,
  raw: '{ "report": "done" }',
  status: "200",
};

/** A saved clause or a schema may be named in the URL, by the page that shows it. */
export async function showBench(visit: Visit) {
  const [verifierId, schema] = [visit.search.get("verifier"), visit.search.get("schema")];
  if (verifierId !== null) {
    const verifier = await readVerifier(visit.ctx, visit.caller, verifierId);
    if (isRefusal(verifier)) return verifier;
    return benchPage(visit, { ...EXAMPLE, raw: "", clauses: textOf(clauseOf(verifier)) }, null);
  }
  const clauses = schema === null ? EXAMPLE.clauses : textOf({ kind: "json.schema", schema });
  return benchPage(visit, { ...EXAMPLE, ...(clauses !== undefined && { clauses }) }, null);
}

const textOf = (clause: object): string => JSON.stringify([clause], null, 2);

/** The form that opens a warrant sends its clauses here too: then nothing says yet what to try them on. */
export async function tryBench(visit: Visit) {
  const { fields } = visit;
  if (fields.do === undefined) return benchPage(visit, { ...EXAMPLE, ...fields }, null);
  return benchPage(visit, fields, await found(visit));
}

async function found({ ctx, caller, fields, gone }: Visit): Promise<Tried | Refusal> {
  const clauses = readClauses(fields.clauses ?? "");
  if (isRefusal(clauses)) return clauses;
  if (fields.do === "url") return tryOnUrl(ctx, caller, { clauses, url: (fields.url ?? "").trim() }, gone());
  const input = readDeliverable(fields, clauses);
  return isRefusal(input) ? input : tryOnBody(ctx, caller, input);
}

/** The fields by which a refusal's message may begin. */
const FIELDS = [
  "clauses",
  "url",
  "raw",
  "status",
  "generated_at",
  "uptime_ratio",
  "emitted_topics",
  "judge_score",
];

function problemsOf({ message }: Refusal): Problems {
  const [, path = "", problem = message] = /^([\w.]+): (.*)$/s.exec(message) ?? [];
  const name = path.startsWith("deliverable.") ? path.slice("deliverable.".length) : path.split(".")[0];
  if (name === undefined || !FIELDS.includes(name)) return { "": message };
  return { [name]: path.startsWith("clauses.") ? message : problem };
}

function benchPage(visit: Visit, fields: Fields, result: Tried | Refusal | null) {
  const refusal = isRefusal(result) ? result : null;
  return {
    title: "Bench",
    section: "verifiers",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <ClauseHead visit={visit} current="/console/bench" />
        <div id="bench" class="columns even">
          <BenchForm visit={visit} fields={fields} problems={refusal ? problemsOf(refusal) : {}} />
          <div>
            {result === null || isRefusal(result) ? (
              <Card title="Result">
                <p class="quiet">
                  {refusal
                    ? "Nothing was tried: see what is wrong beside its field."
                    : "Each clause is explained here, once it was tried on something."}
                </p>
              </Card>
            ) : (
              <Found tried={result} />
            )}
          </div>
        </div>
      </>
    ),
  } as const;
}

/** With the script the result is laid over the page, and what was pasted stays where it is. */
const asks = {
  "hx-post": "/console/bench",
  "hx-target": "#bench",
  "hx-select": "#bench",
  "hx-swap": "outerMorph",
};

type BenchProps = { visit: Visit; fields: Fields; problems: Problems };

const BenchForm = ({ visit, fields, problems }: BenchProps) => (
  <Card>
    <Form by={visit} action="/console/bench" label="Bench" problem={problems[""]}>
      <Area
        name="clauses"
        label="Clauses"
        required
        value={fields.clauses}
        problem={problems.clauses}
        hint={<a href="/docs/clauses">Every kind, with examples</a>}
        attributes={{ class: "code", spellcheck: "false" }}
      />
      {roleIsAtLeast(visit.caller.role, "operator") ? (
        <fieldset>
          <legend>On a URL</legend>
          <div class="inline">
            <Field
              name="url"
              label="Address of the deliverable"
              value={fields.url}
              problem={problems.url}
              attributes={{ inputmode: "url", autocomplete: "off", placeholder: "https://…" }}
            />
            <button type="submit" name="do" value="url" {...asks}>
              Fetch and try
            </button>
          </div>
        </fieldset>
      ) : null}
      <fieldset>
        <legend>On a body</legend>
        <Area
          name="raw"
          label="Body"
          value={fields.raw}
          problem={problems.raw}
          attributes={{ class: "code short", spellcheck: "false" }}
        />
        <Field
          name="status"
          label="Status"
          value={fields.status}
          problem={problems.status}
          attributes={{ inputmode: "numeric", autocomplete: "off" }}
        />
        <Supplied fields={fields} problems={problems} />
        <p>
          <button type="submit" name="do" value="body" class="primary" {...asks}>
            Try on this body
          </button>
        </p>
      </fieldset>
    </Form>
  </Card>
);

/** What some kinds of clauses look at besides status and body. */
const Supplied = ({ fields, problems }: Omit<BenchProps, "visit">) => {
  const names = ["generated_at", "uptime_ratio", "emitted_topics", "judge_score"];
  const [generatedAt, uptime, topics, judge] = names.map((name) => ({
    name,
    value: fields[name],
    problem: problems[name],
  }));
  if (!generatedAt || !uptime || !topics || !judge) return null;
  return (
    <details open={names.some((name) => fields[name] || problems[name])}>
      <summary>What else is supplied</summary>
      <div class="form">
        <Field {...generatedAt} label="Made at" hint="For data.freshness, such as 2030-01-31T12:00:00Z." />
        <Field {...uptime} label="Uptime" hint="For uptime.window: from 0 to 1." />
        <Field {...topics} label="Topics" hint="For chain.event: between commas." />
        <Field {...judge} label="Judgement" hint="For llm.judge: from 0 to 1." />
      </div>
    </details>
  );
};

const Found = ({ tried: { evaluation, answer, decision, policy } }: { tried: Tried }) => {
  const { details, passed, score } = evaluation;
  const passing = details.filter((result) => result.passed).length;
  return (
    <>
      <Card
        title={
          <Badge
            role="status"
            look={passed ? "pass" : "fail"}
            of={passed ? "All clauses passed" : `${passing} of ${details.length} passed`}
          />
        }
      >
        <Facts
          of={[
            ["Score", percent(Math.round(score * 10_000))],
            [
              "Would lead to",
              <>
                {outcomeWords(decision.outcome, decision.releasedBps)}, by{" "}
                {policy === null ? (
                  "the built-in rules"
                ) : (
                  <a href={`/console/policies/${policy.id}`}>
                    <Text of={policy.name} />, version {policy.version}
                  </a>
                )}
              </>,
            ],
            ...(answer === null
              ? []
              : [
                  [
                    "Answer",
                    answer.status === null
                      ? "none"
                      : `${answer.status}, ${answer.bytes} bytes in ${answer.durationMs} ms`,
                  ] as const,
                ]),
            ["Evidence", <Id of={evaluation.evidenceHash} />],
          ]}
        />
      </Card>
      <Card title="Clause by clause">
        <Explained evaluation={evaluation} />
      </Card>
    </>
  );
};
