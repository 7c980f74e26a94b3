/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../../core/errors.ts";
import { createSession } from "../../../services/admin/sessions.ts";
import { type Fields, LIFETIMES, readSessionLimits, unitsOf } from "../../../services/console/agent-input.ts";
import { type Budget, type ListedAgent, readAgent } from "../../../services/console/agents.ts";
import { Card, Head } from "../../parts/blocks.tsx";
import { Area, Choose, Field, Form, type Problems } from "../../parts/forms.tsx";
import { problemsOf } from "../../problems.ts";
import type { Submission, Visit } from "../../route.ts";
import { AgentLink, Limit, type OfId } from "./words.tsx";

/** The form that gives an agent a spend session. */

const FIELDS = [
  ...["amount_ceiling", "warrant_limit", "failure_budget", "per_warrant_max", "hourly_max", "daily_max"],
  ...["payees", "source_origins", "lifetime", "expires_at"],
];

export const showNewSession = (visit: Visit<OfId>) => newSessionPage(visit, null);

async function newSessionPage(visit: Visit<OfId>, tried: { fields: Fields; refusal: Refusal } | null) {
  const found = await readAgent(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(found)) return found;
  const { agent, budget } = found;
  const problems = tried ? problemsOf(tried.refusal, FIELDS) : {};
  return {
    title: `A budget for ${agent.name}`,
    section: "agents",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <>
        <Head
          title="A new spend session"
          about={
            <>
              of <AgentLink agent={agent} />
            </>
          }
        />
        <div class="columns">
          <Card>
            <Form
              by={visit}
              action={`/console/agents/${agent.id}/sessions/new`}
              label="A new spend session"
              problem={problems[""]}
            >
              <SessionFields fields={tried?.fields ?? fieldsOf(found)} problems={problems} />
              <button type="submit" class="primary">
                Give it this budget
              </button>
            </Form>
          </Card>
          <Card title="What happens" aside={<a href="/docs/sessions">Sessions and budgets</a>}>
            <ul class="consequences">
              <Before budget={budget} />
              <li>
                What the agent opens in its own name is charged to it: first held, then paid or given back.
              </li>
              {agent.mustBeNamed ? null : (
                <li>
                  <strong>Its keys may leave the agent out</strong>, and then this budget does not limit them.{" "}
                  <a href={`/console/agents/${agent.id}/edit`}>Make it an agent that must be named</a>
                </li>
              )}
            </ul>
          </Card>
        </div>
      </>
    ),
  } as const;
}

/** What becomes of the session that there is. */
const Before = ({ budget }: { budget: Budget | null }) => {
  if (budget === null) return <li>Until now it has no budget: it may hold all that is available.</li>;
  const { session, end } = budget;
  return end === null ? (
    <li>
      The session that it has ends, with <Limit of={session.amountSpent} /> of{" "}
      <Limit of={session.amountCeiling} /> held or paid. What it holds stays held, and does not count in the
      new one.
    </li>
  ) : (
    <li>Its last session has ended, so it opens nothing in its own name until it has this one.</li>
  );
};

/** A new session begins with the limits of the one before. */
const fieldsOf = ({ agent, budget }: ListedAgent): Fields => {
  const session = budget?.session;
  return {
    failure_budget: String(session?.failureBudget ?? agent.failureBudget),
    ...(session && {
      amount_ceiling: unitsOf(session.amountCeiling),
      warrant_limit: session.warrantLimit === null ? "" : String(session.warrantLimit),
      per_warrant_max: unitsOf(session.perWarrantMax),
      hourly_max: unitsOf(session.hourlyMax),
      daily_max: unitsOf(session.dailyMax),
      payees: (session.payees ?? []).join("\n"),
      source_origins: (session.sourceOrigins ?? []).join("\n"),
    }),
  };
};

type FieldsProps = { fields: Fields; problems: Problems };

const SessionFields = ({ fields, problems }: FieldsProps) => {
  const amount = (name: string, label: string, hint: string, required = false) => (
    <Field
      name={name}
      label={label}
      required={required}
      value={fields[name]}
      problem={problems[name]}
      hint={hint}
      attributes={{ inputmode: "decimal", autocomplete: "off" }}
    />
  );
  return (
    <>
      <div class="pair">
        {amount(
          "amount_ceiling",
          "In all, in USDC",
          "The most that may be held or paid, such as 50.00.",
          true,
        )}
        {amount("per_warrant_max", "For one warrant", "Empty: any amount.")}
        {amount("hourly_max", "Within an hour", "Held within 60 minutes. What returns makes no room.")}
        {amount("daily_max", "Within a day", "The same within 24 hours.")}
        <CountField
          name="warrant_limit"
          label="How many warrants"
          hint="Empty: any number."
          {...{ fields, problems }}
        />
        <CountField
          name="failure_budget"
          label="Failures in a row"
          hint="After so many it opens nothing more."
          {...{ fields, problems }}
        />
        <Lifetime fields={fields} problems={problems} />
      </div>
      <ListField
        name="payees"
        label="Payees"
        hint="One a line. One that ends in * is every payee that begins like it. Empty: everybody."
        {...{ fields, problems }}
      />
      <ListField
        name="source_origins"
        label="Sources"
        hint="Where it may verify from and buy from, one a line: https://api.example, or https://api.example:* for every port. Empty: every origin."
        {...{ fields, problems }}
      />
    </>
  );
};

type OneField = FieldsProps & { name: string; label: string; hint: string };

const CountField = ({ fields, problems, name, ...about }: OneField) => (
  <Field
    {...about}
    name={name}
    value={fields[name]}
    problem={problems[name]}
    attributes={{ inputmode: "numeric", autocomplete: "off" }}
  />
);

const ListField = ({ fields, problems, name, ...about }: OneField) => (
  <Area
    {...about}
    name={name}
    value={fields[name] ?? ""}
    problem={problems[name]}
    attributes={{ spellcheck: "false" }}
  />
);

const Lifetime = ({ fields, problems }: FieldsProps) => (
  <>
    <Choose
      name="lifetime"
      label="Ends in"
      value={fields.lifetime ?? "7d"}
      problem={problems.lifetime}
      choices={Object.entries(LIFETIMES).map(([value, [words]]) => ({ value, words }))}
    />
    <Field
      name="expires_at"
      label="Or exactly at, in UTC"
      type="datetime-local"
      value={fields.expires_at}
      problem={problems.expires_at}
      hint="Empty: after the time beside it."
    />
  </>
);

export async function sendNewSession(submission: Submission<OfId>) {
  const { ctx, caller, fields, params } = submission;
  const limits = readSessionLimits(fields, ctx.now());
  const answer = isRefusal(limits)
    ? limits
    : await createSession(ctx, caller, { ...limits, agent_id: params.id });
  return isRefusal(answer)
    ? newSessionPage(submission, { fields, refusal: answer })
    : { to: `/console/agents/${params.id}?done=budgeted` };
}
