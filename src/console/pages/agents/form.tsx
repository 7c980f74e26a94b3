/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../../core/errors.ts";
import { createAgent, FAILURE_BUDGET_MAX, updateAgent } from "../../../services/admin/agents.ts";
import {
  type Fields,
  readAgentChange,
  readNewAgent,
  wasField,
} from "../../../services/console/agent-input.ts";
import { readAgent } from "../../../services/console/agents.ts";
import { Card, Head } from "../../parts/blocks.tsx";
import { Confirmation } from "../../parts/confirmation.tsx";
import { Choose, Field, Form, type Problems } from "../../parts/forms.tsx";
import { NameField } from "../../parts/name-fields.tsx";
import { problemsOf } from "../../problems.ts";
import type { Submission, Visit } from "../../route.ts";
import type { OfId } from "./words.tsx";

/** The forms that make an agent and change it. */

const FIELDS = ["name", "failure_budget", "must_be_named", "did_key"];

export const showNewAgent = async (visit: Visit) => newAgentPage(visit, {}, null);

const newAgentPage = (visit: Visit, fields: Fields, refusal: Refusal | null) => {
  const problems = refusal ? problemsOf(refusal, FIELDS) : {};
  return {
    title: "Make an agent",
    section: "agents",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Make an agent"
          about={`It is in ${visit.caller.mode}, and so are its keys and warrants.`}
        />
        <div class="columns">
          <Card>
            <Form by={visit} action="/console/agents/new" label="Make an agent" problem={problems[""]}>
              <AgentFields fields={fields} problems={problems} />
              <Field
                name="did_key"
                label="Its own key, if it brings one"
                value={fields.did_key}
                problem={problems.did_key}
                hint="Such as did:key:z6Mk… It is shown in the agent's identity as its claim. Without one Holdfast names it by this address."
                attributes={{ autocomplete: "off", spellcheck: "false" }}
              />
              <button type="submit" class="primary">
                Make it
              </button>
            </Form>
          </Card>
          <Card title="What comes next" aside={<a href="/docs/sessions">Sessions and budgets</a>}>
            <ol class="steps">
              <li>Give it a budget: how much, how often, to whom, and until when.</li>
              <li>Make a key, whose secret the program keeps.</li>
              <li>It opens warrants, and you see them here.</li>
            </ol>
          </Card>
        </div>
      </>
    ),
  } as const;
};

const MUST_BE_NAMED = [
  { value: "on", words: "Yes: its budget limits its keys" },
  { value: "off", words: "No: its keys may go around its budget" },
];

/** The fields that the agent's whole life has. */
const AgentFields = ({ fields, problems }: { fields: Fields; problems: Problems }) => (
  <>
    <NameField value={fields.name} problem={problems.name} hint="As you will find it in lists." />
    <Field
      name="failure_budget"
      label="Failures in a row"
      required
      value={fields.failure_budget ?? "3"}
      problem={problems.failure_budget}
      hint="After so many it pauses, until somebody makes it active again."
      attributes={{ inputmode: "numeric", autocomplete: "off", max: String(FAILURE_BUDGET_MAX) }}
    />
    <Choose
      name="must_be_named"
      label="Must be named"
      value={fields.must_be_named ?? "on"}
      problem={problems.must_be_named}
      choices={MUST_BE_NAMED}
      hint="Whether its keys must send agent_id with each warrant. A session limits only what names its agent."
    />
  </>
);

export async function sendNewAgent(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const { organisationId, mode } = caller;
  const answer = await createAgent(ctx, caller, {
    ...readNewAgent(fields),
    ...{ organisation_id: organisationId, mode },
  });
  return isRefusal(answer)
    ? newAgentPage(submission, fields, answer)
    : { to: `/console/agents/${answer.id}?done=created` };
}

export const showEdit = (visit: Visit<OfId>) => editPage(visit, null);

async function editPage(visit: Visit<OfId>, tried: { fields: Fields; refusal: Refusal } | null) {
  const found = await readAgent(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(found)) return found;
  const { agent } = found;
  const now: Fields = {
    name: agent.name,
    failure_budget: String(agent.failureBudget),
    must_be_named: agent.mustBeNamed ? "on" : "off",
  };
  // What was sent is compared with how the form was opened first.
  const was = (name: string) => tried?.fields[wasField(name)] ?? now[name];
  const problems = tried ? problemsOf(tried.refusal, FIELDS) : {};
  return {
    title: `Change ${agent.name}`,
    section: "agents",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <Confirmation title="Change the agent" back={`/console/agents/${agent.id}`}>
        <Form
          by={visit}
          action={`/console/agents/${agent.id}/edit`}
          label="Change the agent"
          problem={problems[""]}
        >
          {Object.keys(now).map((name) => (
            <input type="hidden" name={wasField(name)} value={was(name)} />
          ))}
          <AgentFields fields={tried?.fields ?? now} problems={problems} />
          <p class="hint">
            Failures in a row so far: {agent.failureCount}. A budget that they reach pauses it at once.
          </p>
          <button type="submit" class="primary wide">
            Change it
          </button>
        </Form>
      </Confirmation>
    ),
  } as const;
}

export async function sendEdit(submission: Submission<OfId>) {
  const { ctx, caller, fields, params } = submission;
  const change = readAgentChange(fields);
  if (change === null) return { to: `/console/agents/${params.id}` };
  const answer = await updateAgent(ctx, caller, { agent_id: params.id, ...change });
  return isRefusal(answer)
    ? editPage(submission, { fields, refusal: answer })
    : { to: `/console/agents/${params.id}?done=changed` };
}
