/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { DAY_MS, isoTime } from "../../core/time.ts";
import { listPasskeys } from "../../services/auth/passkeys/list.ts";
import {
  FIRST_AMOUNT,
  FIRST_FUNDS,
  type FirstSteps,
  takeFirstSteps,
} from "../../services/console/first-steps.ts";
import { Card, Facts, Head, Notice } from "../parts/blocks.tsx";
import { Amount, Id, StateBadge, Text } from "../parts/figures.tsx";
import { Form } from "../parts/forms.tsx";
import { AddPasskey } from "../parts/passkeys.tsx";
import { Secret } from "../parts/secret.tsx";
import type { Page, Submission, Visit } from "../route.ts";

/** The first steps of a new organisation: a passkey, and an agent with a first warrant that works. */

const ASSET = "USDC";

export const showWelcome = (visit: Visit) => welcomePage(visit, null);

async function welcomePage(visit: Visit, refusal: Refusal | null): Promise<Page | Refusal> {
  const passkeys = await listPasskeys(visit.ctx, visit.caller);
  if (isRefusal(passkeys)) return passkeys;
  return {
    title: "First steps",
    section: null,
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title={
            <span>
              Welcome, <Text of={visit.user.name} />
            </span>
          }
          about={
            <>
              <Text of={visit.around.organisation.name} /> is made
              {visit.caller.role === "owner" ? ", and you own it" : ""}. Two steps are left; each may wait.
            </>
          }
        />
        {refusal ? <Notice kind="problem">{refusal.message}</Notice> : null}
        <div class="halves">
          <Card title="1. A passkey">
            <p class="quiet">
              A fingerprint, a face or a security key. It signs you in, and signs what you decide about large
              amounts.
            </p>
            {passkeys.data.length > 0 ? (
              <Notice kind="done">You have a passkey.</Notice>
            ) : (
              <AddPasskey baseUrl={visit.ctx.baseUrl} />
            )}
          </Card>
          <FirstWarrant visit={visit} />
        </div>
        <p>
          <a href="/console">Go to the overview</a>
        </p>
      </>
    ),
  };
}

const FirstWarrant = ({ visit }: { visit: Visit }) => (
  <Card title="2. An agent, and a first warrant">
    <p class="quiet">
      In the sandbox, where no money is real. <Amount of={FIRST_FUNDS} asset={ASSET} /> of play money comes
      in, and an agent gets an API key. With it the agent promises a seller{" "}
      <Amount of={FIRST_AMOUNT} asset={ASSET} /> for a fresh forecast for Oslo. Holdfast fetches the forecast,
      checks it, and pays.
    </p>
    <p class="quiet">The seller runs on this machine for a moment. Nothing is asked of the internet.</p>
    {visit.caller.mode === "sandbox" ? (
      <Form by={visit} action="/console/welcome" label="First warrant">
        <button type="submit" class="primary wide">
          Make the agent, and try it
        </button>
      </Form>
    ) : (
      <Notice kind="note">You are in live. Switch to the sandbox, and open this page again.</Notice>
    )}
  </Card>
);

export async function sendFirstSteps(submission: Submission): Promise<Page | Refusal> {
  const steps = await takeFirstSteps(submission.ctx, submission.caller, submission.gone());
  return isRefusal(steps) ? welcomePage(submission, steps) : donePage(submission, steps);
}

const donePage = ({ ctx }: Submission, { agentId, secret, warrant }: FirstSteps): Page => ({
  title: "It works",
  section: null,
  hasSecret: true,
  content: (
    <>
      <Head
        title={
          <>
            It works <StateBadge state={warrant.state} />
          </>
        }
        about={
          warrant.state === "released" ? (
            <>
              <Amount of={warrant.amount} asset={warrant.asset} /> was held, the forecast was fetched and
              checked, and the seller is paid.
            </>
          ) : (
            "The warrant was opened and checked; its page says what came of it."
          )
        }
        actions={
          <>
            <a class="button" href={`/t/${warrant.id}`}>
              The receipt
            </a>
            <a class="button primary" href={`/console/warrants/${warrant.id}`}>
              The warrant
            </a>
          </>
        }
      />
      <Card title="The agent's API key">
        <p class="quiet">Keep it where the agent reads it, and nobody else.</p>
        <Secret label="The key of the first agent, in the sandbox" of={secret} />
        <Facts
          of={[
            ["Agent", <Id of={agentId} />],
            ["Came in", <Amount of={FIRST_FUNDS} asset={ASSET} />],
            ["Held, then paid", <Amount of={warrant.amount} asset={warrant.asset} />],
          ]}
        />
      </Card>
      <Card title="The next one, by the agent">
        <p class="quiet">The key opens warrants; it cannot settle them. Only a policy or a person pays.</p>
        <pre class="seen" tabindex={0}>
          {curlOf(new URL(ctx.baseUrl).origin, secret, agentId, ctx.now() + 30 * DAY_MS)}
        </pre>
        <p>
          <a href="/docs/start">The tour</a> · <a href="/docs/api-reference">The API</a> ·{" "}
          <a href="/console">The overview</a>
        </p>
      </Card>
    </>
  ),
});

const curlOf = (
  origin: string,
  secret: string,
  agentId: string,
  deadline: number,
): string => `curl ${origin}/v1/warrants \\
  -H 'Authorization: Bearer ${secret}' -H 'Idempotency-Key: mine-1' \\
  -H 'Content-Type: application/json' \\
  -d '{"agent_id":"${agentId}","amount":"3000000","payee":"seller","deadline":"${isoTime(deadline)}",
       "spec":{"clauses":[{"kind":"http.status","equals":200}]}}'`;
