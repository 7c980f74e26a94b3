/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { BUILT_IN_RULES } from "../../core/policy.ts";
import { changesBetween } from "../../core/policy-spans.ts";
import { createPolicy } from "../../services/admin/policies.ts";
import type { BackTest, BackTests } from "../../services/console/back-test.ts";
import { type EditorChoices, readEditorChoices, rulesBefore } from "../../services/console/policies.ts";
import {
  type Draft,
  draftOfFields,
  draftOfRules,
  rulesOfDraft,
  withBand,
  withoutBand,
} from "../../services/console/policy-input.ts";
import { Tested } from "../parts/back-tested.tsx";
import { BandLine, Changes } from "../parts/bands.tsx";
import { Card, Head, Notice } from "../parts/blocks.tsx";
import { choicesOf } from "../parts/choices.ts";
import { Text } from "../parts/figures.tsx";
import { Choose, Field, Form, type Problems } from "../parts/forms.tsx";
import { ASKS_SERVER, Bands, Besides, TRY } from "../parts/policy-fields.tsx";
import type { Submission, Visit } from "../route.ts";

/**
 * The editor of a policy. While one types, the server judges the draft and draws it; nothing is saved before the last button, and
 * that makes a new version.
 */

/** What a page of the editor shows besides the draft. */
type Judged = {
  readonly refusal: Refusal | null;
  readonly test: BackTest | null;
  /** How many flips come before the page of them. */
  readonly offset: number;
};
const UNTESTED: Judged = { refusal: null, test: null, offset: 0 };
const FORM_ID = "draft-form";

export async function showNewPolicy(visit: Visit) {
  const from = visit.search.get("from");
  const choices = await readEditorChoices(visit.ctx, visit.caller, { base: from, name: "", agentId: null });
  if (isRefusal(choices)) return choices;
  const { base } = choices;
  const agent = visit.search.get("agent");
  const agentId = agent === null ? (base?.agentId ?? null) : agent || null;
  const of = { name: base?.name ?? "", agentId, base: base?.id ?? null };
  return draftPage(visit, draftOfRules(base?.rules ?? BUILT_IN_RULES, of), UNTESTED);
}

/** What is asked of a draft that is not saved: to judge it, a band more or less, a back-test. */
export const tryPolicy = (backTests: BackTests) => async (visit: Visit) => {
  const { ctx, caller, fields } = visit;
  const [asked = "", number = ""] = (fields.do ?? "").split(".");
  const sent = draftOfFields(fields);
  if (asked === "add") return draftPage(visit, withBand(sent), UNTESTED);
  if (asked === "remove") return draftPage(visit, withoutBand(sent, Number(number)), UNTESTED);
  const rules = rulesOfDraft(sent);
  if (isRefusal(rules)) return draftPage(visit, sent, { ...UNTESTED, refusal: rules });
  if (asked !== "test") return draftPage(visit, sent, UNTESTED);
  const offset = /^\d{1,5}$/.test(number) ? Number(number) : 0;
  const test = await backTests.run(ctx, caller, { rules, agentId: sent.agentId, offset }, visit.gone());
  if (isRefusal(test)) return draftPage(visit, sent, { ...UNTESTED, refusal: test });
  return draftPage(visit, sent, { refusal: null, test, offset });
};

export async function sendPolicy(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const draft = draftOfFields(fields);
  const rules = rulesOfDraft(draft);
  const saved = isRefusal(rules)
    ? rules
    : await createPolicy(ctx, caller, {
        organisation_id: caller.organisationId,
        name: draft.name,
        rules,
        ...(draft.agentId !== null && { agent_id: draft.agentId }),
      });
  if (isRefusal(saved)) return draftPage(submission, draft, { ...UNTESTED, refusal: saved });
  return { to: `/console/policies/${saved.id}?done=saved` };
}

const FIELDS: Readonly<Record<string, string>> = {
  name: "name",
  "rules.maxAmount": "max_amount",
  "rules.bands": "bands",
};
/** In the form a share is in per cent. */
const SHARE_PROBLEM = "must be more than 0 % and less than 100 %, such as 40 or 12.5";

/** What is wrong, beside its field; under no name where it is about the whole. */
function problemsOf({ message }: Refusal): Problems {
  const [, path = "", problem = message] = /^([\w.]+): (.*)$/s.exec(message) ?? [];
  const [, at, field] = /^rules\.bands\.(\d+)\.(\w+)$/.exec(path) ?? [];
  if (at !== undefined)
    return field === "releasedBps"
      ? { [`bands.${at}.share`]: SHARE_PROBLEM }
      : { [`bands.${at}.${field}`]: problem };
  const name = FIELDS[path];
  return name === undefined ? { "": message } : { [name]: problem };
}

async function draftPage(visit: Visit, draft: Draft, judged: Judged) {
  const choices = await readEditorChoices(visit.ctx, visit.caller, draft);
  if (isRefusal(choices)) return choices;
  const { refusal } = judged;
  return {
    title: "Draft a policy",
    section: "policies",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Draft a policy"
          about="Each band decides from its score up to the next one. The score is the share of clauses that passed."
        />
        <div id="draft">
          <Form
            by={visit}
            action={TRY}
            label="Draft"
            class="form editor"
            attributes={{ ...ASKS_SERVER, id: FORM_ID, "hx-trigger": "input delay:250ms, change" }}
          >
            <Editor draft={draft} choices={choices} judged={judged} />
          </Form>
          {judged.test === null ? null : (
            <Tested
              mode={visit.caller.mode}
              agent={choices.agents.find(({ id }) => id === draft.agentId) ?? null}
              test={judged.test}
              offset={judged.offset}
              page={flipsAfter}
            />
          )}
        </div>
      </>
    ),
  } as const;
}

const flipsAfter = (offset: number, words: string) => (
  <button type="submit" form={FORM_ID} name="do" value={`test.${offset}`} {...ASKS_SERVER}>
    {words}
  </button>
);

type EditorProps = { draft: Draft; choices: EditorChoices; judged: Judged };

const Editor = ({ draft, choices, judged: { refusal } }: EditorProps) => {
  const problems = refusal ? problemsOf(refusal) : {};
  const { previous } = choices;
  return (
    <>
      {/* What Enter presses in a field: the first button. */}
      <button type="submit" name="do" value="" hidden>
        Judge the draft
      </button>
      <input type="hidden" name="base" value={draft.base ?? ""} />
      {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
      <div class="columns">
        <Card title="Rules">
          <div class="pair">
            <Field
              name="name"
              label="Name"
              required
              value={draft.name}
              problem={problems.name}
              hint={previous ? `It is the next version, ${previous.version + 1}.` : "It is a new policy."}
              attributes={{ maxlength: "200", autocomplete: "off" }}
            />
            <Choose
              name="agent_id"
              label="For"
              value={draft.agentId ?? ""}
              hint="An agent's own decides before the organisation's."
              choices={choicesOf(choices.agents, "The whole organisation", draft.agentId)}
            />
          </div>
          <Bands draft={draft} problems={problems} refusal={refusal} />
          <Besides draft={draft} problems={problems} />
        </Card>
        <div>
          <Judgement draft={draft} choices={choices} refusal={refusal} />
          <Card title="Then">
            <button type="submit" name="do" value="test" class="wide" {...ASKS_SERVER}>
              Back-test it
            </button>
            <p class="hint">What it would have made of the checks that were decided. It changes nothing.</p>
            <button type="submit" class="primary wide" formaction="/console/policies">
              {previous ? `Save as version ${previous.version + 1}` : "Save the policy"}
            </button>
            <p class="hint">
              It moves no money. Warrants that are open keep their version; new ones get this.
            </p>
          </Card>
        </div>
      </div>
    </>
  );
};

/** The draft as a picture, and what it does differently from what decides today. */
const Judgement = ({
  draft,
  choices,
  refusal,
}: {
  draft: Draft;
  choices: EditorChoices;
  refusal: Refusal | null;
}) => {
  const rules = rulesOfDraft(draft);
  if (isRefusal(rules)) {
    return (
      <Card title="What each score leads to">
        <p class="quiet" role="status">
          {refusal ? "The draft is drawn once its rules are right." : "A band is not complete yet."}
        </p>
      </Card>
    );
  }
  const { previous, base } = choices;
  const before = previous ?? base;
  return (
    <>
      <Card title="What each score leads to">
        <BandLine rules={rules} title="What each score leads to in the draft" />
      </Card>
      <Card
        title={
          before ? (
            <>
              Beside <Text of={before.name} />, version {before.version}
            </>
          ) : (
            "Beside the built-in rules"
          )
        }
      >
        <BandLine rules={rulesBefore(choices)} title="What each score led to before" />
        <Changes of={changesBetween(rulesBefore(choices), rules)} />
      </Card>
    </>
  );
};
