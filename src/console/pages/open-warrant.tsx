/** @jsxImportSource hono/jsx */

import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { DEADLINES, readOpening } from "../../services/console/form-input.ts";
import { readOpeningChoices } from "../../services/console/warrant-list.ts";
import { openWarrant } from "../../services/warrants/open.ts";
import { Card, Facts, Head } from "../parts/blocks.tsx";
import { CHOICES_MAX, choicesOf } from "../parts/choices.ts";
import { ClauseKinds } from "../parts/clause-kinds.tsx";
import { Amount } from "../parts/figures.tsx";
import { Area, Choose, Field, Form, type Problems } from "../parts/forms.tsx";
import type { Submission, Visit } from "../route.ts";

/** The form that opens a warrant. */

const EXAMPLE = `[
  { "kind": "http.status", "equals": 200 }
]`;

type Fields = Readonly<Record<string, string>>;
type Choices = Exclude<Awaited<ReturnType<typeof readOpeningChoices>>, Refusal>;

/** An agent and a saved clause may be chosen in the URL already, by the pages that show them. */
export const showOpening = (visit: Visit) =>
  openingPage(
    visit,
    { verifier_id: visit.search.get("verifier") ?? "", agent_id: visit.search.get("agent") ?? "" },
    null,
  );

/** The fields by which a refusal's message may begin, and where the form shows it. */
const FIELDS = {
  amount: "amount",
  asset: "asset",
  payee: "payee",
  deadline: "deadline",
  clauses: "clauses",
  spec: "clauses",
};

/** What is wrong, beside its field; under no name where it is about the whole. */
function problemsOf({ message }: Refusal): Problems {
  const [, path = "", problem = message] = /^([\w.]+): (.*)$/s.exec(message) ?? [];
  const name = FIELDS[(path.split(".")[0] ?? "") as keyof typeof FIELDS] ?? "";
  if (name === "") return { "": message };
  return { [name]: path.startsWith("spec.clauses.") ? `${path.slice("spec.".length)}: ${problem}` : problem };
}

async function openingPage(visit: Visit, fields: Fields, refusal: Refusal | null) {
  const choices = await readOpeningChoices(visit.ctx, visit.caller);
  if (isRefusal(choices)) return choices;
  return {
    title: "Open a warrant",
    section: "warrants",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Open a warrant"
          about="Its amount is held until the promise is kept, or the deadline passes."
        />
        <div class="columns">
          <Card>
            <OpeningForm
              visit={visit}
              choices={choices}
              fields={fields}
              problems={refusal ? problemsOf(refusal) : {}}
            />
          </Card>
          <Beside choices={choices} />
        </div>
      </>
    ),
  } as const;
}

type OpeningProps = { visit: Visit; choices: Choices; fields: Fields; problems: Problems };

const OpeningForm = ({ visit, choices: { agents, verifiers }, fields, problems }: OpeningProps) => (
  <Form by={visit} action="/console/warrants/new" label="Open a warrant" problem={problems[""]}>
    <Field
      name="payee"
      label="Payee"
      required
      value={fields.payee}
      problem={problems.payee}
      hint="Who is paid when the promise is kept."
      attributes={{ maxlength: "512", autocomplete: "off" }}
    />
    <Field
      name="amount"
      label="Amount"
      required
      value={fields.amount}
      problem={problems.amount}
      hint="In units, such as 8.40."
      attributes={{ inputmode: "decimal", autocomplete: "off" }}
    />
    <Field name="asset" label="Asset" required value={fields.asset ?? "USDC"} problem={problems.asset} />
    <Choose
      name="deadline"
      label="Deadline"
      value={fields.deadline ?? "1d"}
      problem={problems.deadline}
      hint="Without a settlement until then, the hold returns."
      choices={Object.entries(DEADLINES).map(([value, [words]]) => ({ value, words }))}
    />
    <Choose
      name="agent_id"
      label="Agent"
      value={fields.agent_id ?? ""}
      hint={`Its budget, limits and policy then apply.${agents.length > CHOICES_MAX ? " More agents: the page of each leads here." : ""}`}
      choices={choicesOf(agents, "None", fields.agent_id)}
    />
    {verifiers.length === 0 ? null : (
      <Choose
        name="verifier_id"
        label="Saved clause to add"
        value={fields.verifier_id ?? ""}
        choices={choicesOf(verifiers, "None", fields.verifier_id)}
      />
    )}
    <Area
      name="clauses"
      label="Clauses"
      required
      value={fields.clauses ?? EXAMPLE}
      problem={problems.clauses}
      hint="What the deliverable must satisfy, as JSON."
      attributes={{ class: "code", spellcheck: "false" }}
    />
    <div class="actions">
      <button type="submit" class="primary">
        Hold the amount
      </button>
      <button type="submit" formaction="/console/bench" formtarget="_blank" formnovalidate>
        Try the clauses on the bench
      </button>
    </div>
  </Form>
);

const Beside = ({ choices: { balances } }: { choices: Choices }) => (
  <div>
    <div id="available" data-live="money">
      <Card title="Available">
        {balances.length === 0 ? (
          <p class="quiet">There is no money yet, so a warrant would be refused.</p>
        ) : (
          <Facts
            of={balances.map(({ asset, balance }) => [
              asset,
              <Amount of={balance.available} asset={asset} />,
            ])}
          />
        )}
      </Card>
    </div>
    <ClauseKinds />
  </div>
);

export async function sendOpening(submission: Submission) {
  const { ctx, caller, fields, idempotency } = submission;
  const input = readOpening(fields, ctx.now());
  const answer = isRefusal(input) ? input : await openWarrant(ctx, caller, input, idempotency);
  if (isRefusal(answer)) return openingPage(submission, fields, answer);
  const { id } = JSON.parse(answer.body) as { readonly id: string };
  return { to: `/console/warrants/${id}?done=opened` };
}
