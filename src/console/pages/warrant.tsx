/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuseField, statusOf } from "../../core/errors.ts";
import type { Band } from "../../core/policy.ts";
import { type Actor, roleIsAtLeast } from "../../core/roles.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { isSettled } from "../../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../../core/webhook.ts";
import { readVersion } from "../../services/console/form-input.ts";
import { decisionsOn, readWarrantDetail, type WarrantDetail } from "../../services/console/warrant-detail.ts";
import { verifyWarrant } from "../../services/warrants/verify.ts";
import { Card, Facts, Head, Notice } from "../parts/blocks.tsx";
import { CheckFacts, Clauses } from "../parts/evidence.tsx";
import { Amount, Id, Line, percent, STATE_WORDS, StateBadge, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import { moneyOf, shareWords } from "../parts/money.tsx";
import { problemsOf } from "../problems.ts";
import type { Submission, Visit } from "../route.ts";
import { AgentLink } from "./agents/words.tsx";
import { DeliveryBadge } from "./webhooks/words.tsx";

/** One warrant: what was promised, what was seen, what was decided, and what a person can do now. */

type OfWarrant = { readonly id: string };

/** What the page says after something was done, by the word in its URL. */
const DONE: Readonly<Record<string, string>> = {
  opened: "The amount is held.",
  verified: "The check was made.",
  settled: "The warrant is settled.",
  decided: "Your decision is recorded.",
};

export const showWarrant = (visit: Visit<OfWarrant>) => warrantPage(visit, null);

async function warrantPage(visit: Visit<OfWarrant>, problem: { url: string; refusal: Refusal } | null) {
  const detail = await readWarrantDetail(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(detail)) return detail;
  const { warrant, checks } = detail;
  const done = DONE[visit.search.get("done") ?? ""];
  const newest = checks[0];
  return {
    title: `Warrant ${warrant.id}`,
    section: "warrants",
    status: problem ? statusOf(problem.refusal.refused) : 200,
    content: (
      <>
        <div id="head" data-live={warrant.id}>
          <Head
            title={
              <>
                <Amount of={warrant.amount} asset={warrant.asset} /> <StateBadge state={warrant.state} />
              </>
            }
            about={
              <>
                to <Text of={warrant.payee} />
              </>
            }
            actions={<Actions visit={visit} detail={detail} />}
          />
        </div>
        {done && !problem ? <Notice kind="done">{done}</Notice> : null}
        <div class="columns">
          <div>
            <div id="verify" class="stack" data-live={warrant.id}>
              <Verify visit={visit} detail={detail} problem={problem} />
            </div>
            <div id="seen" class="stack" data-live={warrant.id}>
              <Card
                title="What was promised"
                aside={<span class="quiet">{clausesWords(warrant.spec.clauses.length)}</span>}
              >
                <Clauses clauses={warrant.spec.clauses} check={newest} />
              </Card>
              {checks.map((check, index) => (
                <Card title={index === 0 ? "The newest check" : "An earlier check"}>
                  <CheckFacts check={check} />
                </Card>
              ))}
            </div>
            {detail.deliveries === null ? null : (
              <div id="deliveries" class="stack" data-live={`${warrant.id} deliveries`}>
                <Deliveries of={detail.deliveries} endpoints={detail.endpoints} />
              </div>
            )}
          </div>
          <div id="facts" data-live={warrant.id}>
            <Money detail={detail} />
            <Policy detail={detail} />
            <Timeline detail={detail} />
            <Card title="Details">
              <Facts
                of={[
                  ["Id", <Id of={warrant.id} />],
                  ["Version", warrant.version],
                  ["Agent", detail.agent ? <AgentLink agent={detail.agent} /> : "none"],
                  ["Deadline", <Time at={warrant.deadline} />],
                  ["Spec hash", <Id of={warrant.specHash} />],
                  ["Rules hash", <Id of={warrant.rulesHash} />],
                ]}
              />
            </Card>
          </div>
        </div>
      </>
    ),
  } as const;
}

const clausesWords = (count: number): string => (count === 1 ? "1 clause" : `${count} clauses`);

const DECISION_WORDS = { release: "Release", partial_release: "Release a part", refund: "Refund" } as const;

const Actions = ({ visit, detail }: { visit: Visit; detail: WarrantDetail }) => {
  const { warrant, escalation } = detail;
  const decisions = decisionsOn(detail, visit.caller);
  if (escalation) {
    return (
      <a class="button primary" href={`/console/escalations/${escalation.id}`}>
        {decisions.length > 0 ? "Decide" : "See the escalation"}
      </a>
    );
  }
  return (
    <>
      {decisions.map((decision) =>
        decision === "dispute" ? null : (
          <a
            class={decision === "refund" ? "button danger" : "button"}
            href={`/console/warrants/${warrant.id}/settle/${decision}`}
            data-dialog
          >
            {DECISION_WORDS[decision]}
          </a>
        ),
      )}
      {isSettled(warrant.state) ? (
        <a class="button" href={`/t/${warrant.id}`}>
          Receipt
        </a>
      ) : null}
    </>
  );
};

type VerifyProps = {
  visit: Visit;
  detail: WarrantDetail;
  problem: { url: string; refusal: Refusal } | null;
};

const Verify = ({ visit, detail: { warrant }, problem }: VerifyProps) =>
  warrant.state !== "held" || !roleIsAtLeast(visit.caller.role, "operator") ? (
    problem && <Notice kind="problem">{problem.refusal.message}</Notice>
  ) : (
    <Card title="Verify">
      <Form by={visit} action={`/console/warrants/${warrant.id}/verify`} class="inline" label="Verify">
        <input type="hidden" name="version" value={String(warrant.version)} />
        <Field
          name="source_url"
          label="Where the deliverable is"
          type="url"
          required
          value={problem?.url ?? ""}
          problem={problem ? Object.values(problemsOf(problem.refusal, ["source_url"]))[0] : undefined}
          attributes={{ placeholder: "https://…", maxlength: "2048" }}
        />
        <button type="submit" class="primary">
          Fetch and check
        </button>
      </Form>
      <p class="hint">Holdfast fetches it, evaluates every clause, and the policy decides what is paid.</p>
    </Card>
  );

const Money = ({ detail: { warrant } }: { detail: WarrantDetail }) => {
  const { held, paid, returned } = moneyOf(warrant);
  const line = (of: bigint) => <Amount of={of} asset={warrant.asset} />;
  return (
    <Card title="Money">
      <Facts
        of={[
          ["Held", line(held)],
          [`Paid${shareWords(warrant.releasedBps)}`, line(paid)],
          ["Returned", line(returned)],
          ...(warrant.settledAt === null ? [] : [["Settled", <Time at={warrant.settledAt} />] as const]),
        ]}
      />
    </Card>
  );
};

const bandWords = ({ outcome, releasedBps, label }: Band): string =>
  `${outcome.replaceAll("_", " ")}${releasedBps ? ` ${percent(releasedBps)}` : ""}${label ? ` (${label})` : ""}`;

/** The bands of the rules, highest first; the one that the newest check fell into is marked. */
const Policy = ({ detail: { policy, rules, checks } }: { detail: WarrantDetail }) => {
  const bands = rules.bands.toSorted((one, other) => other.minScore - one.minScore);
  const score = (checks[0]?.score ?? -1) / 10_000;
  const hit = bands.find(({ minScore }) => score >= minScore);
  return (
    <Card
      title={policy ? <Text of={`${policy.name}, version ${policy.version}`} /> : "The built-in policy"}
      aside={<span class="quiet">policy</span>}
    >
      <Facts
        of={bands.map((band) => [
          `From ${Math.round(band.minScore * 100)} %`,
          band === hit && checks[0] ? <strong>{bandWords(band)} ← the newest check</strong> : bandWords(band),
        ])}
      />
    </Card>
  );
};

const who = (actor: Actor, names: ReadonlyMap<string, string>) =>
  actor.id === null ? "Holdfast" : <Text of={names.get(actor.id) ?? actor.id} />;

const Timeline = ({ detail: { trace, names } }: { detail: WarrantDetail }) => (
  <Card title="Timeline">
    <ol class="steps">
      {trace.toReversed().map(({ to, actor, recordedAt }) => (
        <li>
          <span>
            {STATE_WORDS[to]} <span class="quiet">by {who(actor, names)}</span>
          </span>
          <Time at={recordedAt} />
        </li>
      ))}
    </ol>
  </Card>
);

type DeliveriesProps = { of: readonly WebhookDelivery[]; endpoints: readonly WebhookEndpoint[] };

const Deliveries = ({ of, endpoints }: DeliveriesProps) => (
  <Card title="Deliveries" aside={<a href="/console/deliveries">All of them</a>}>
    {of.length === 0 ? (
      <p class="quiet">No endpoint has asked for what happened to it.</p>
    ) : (
      <>
        <ol class="steps">
          {of.map((delivery) => (
            <li>
              <div>
                <a href={`/console/deliveries/${delivery.id}`}>{delivery.event}</a>{" "}
                <DeliveryBadge of={delivery.status} />
                <div class="quiet">
                  <Line of={endpoints.find(({ id }) => id === delivery.webhookId)?.url ?? ""} />
                </div>
              </div>
              <Time at={delivery.createdAt} />
            </li>
          ))}
        </ol>
        <p class="hint">As each was first sent. What was sent again is among all of them.</p>
      </>
    )}
  </Card>
);

export async function sendVerify(submission: Submission<OfWarrant>) {
  const { ctx, caller, fields, idempotency, params } = submission;
  const url = (fields.source_url ?? "").trim();
  const version = readVersion(fields.version);
  if (isRefusal(version)) return version;
  const problem = checkSourceUrl(url);
  const answer =
    problem === null
      ? await verifyWarrant(
          ctx,
          caller,
          { warrantId: params.id, sourceUrl: url, ifMatch: version },
          idempotency,
          submission.gone(),
        )
      : refuseField("source_url", problem);
  if (isRefusal(answer)) return warrantPage(submission, { url, refusal: answer });
  return { to: `/console/warrants/${params.id}?done=verified` };
}
