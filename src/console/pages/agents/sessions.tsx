/** @jsxImportSource hono/jsx */
import type { Agent } from "../../../core/agent.ts";
import { isRefusal, type Refusal, statusOf } from "../../../core/errors.ts";
import { revokeSession } from "../../../services/admin/sessions.ts";
import { type Budget, listSessionsOfAgent, readSession } from "../../../services/console/agents.ts";
import { warrantsOf } from "../../../services/live/heard.ts";
import { Card, Empty, Head, Notice, Table } from "../../parts/blocks.tsx";
import { Confirmation } from "../../parts/confirmation.tsx";
import { Id, Text, Time } from "../../parts/figures.tsx";
import { Form } from "../../parts/forms.tsx";
import type { Submission, Visit } from "../../route.ts";
import { Gauges, Limits } from "./budget.tsx";
import { AgentLink, BudgetCell, EndOf, Limit, mayManage, type OfId, PagerOf, pageAskedOf } from "./words.tsx";

/** The spend sessions of an agent: all of them, one of them, and the end of one. */

export async function showSessions(visit: Visit<OfId>) {
  const asked = pageAskedOf(visit.search);
  const found = await listSessionsOfAgent(visit.ctx, visit.caller, visit.params.id, asked);
  if (isRefusal(found)) return found;
  const { agent, page } = found;
  return {
    title: `Sessions of ${agent.name}`,
    section: "agents",
    content: (
      <>
        <Head
          title="Spend sessions"
          about={
            <>
              of <AgentLink agent={agent} />
            </>
          }
          actions={mayManage(visit.caller) ? <NewSession agent={agent} words="New session" /> : null}
        />
        <div id="sessions" data-live={`sessions ${agent.id} ${warrantsOf(agent.id)}`}>
          <Card>
            {page.rows.length === 0 ? (
              <Empty title="No sessions yet">
                <p>A spend session says what the agent may spend.</p>
              </Empty>
            ) : (
              <Table
                label="Spend sessions"
                columns={["Made", "State", "Held or paid", "Warrants"]}
                numbers={["Warrants"]}
                rows={page.rows.map(rowOf)}
              />
            )}
            <PagerOf
              path={`/console/agents/${agent.id}/sessions`}
              page={page}
              ids={page.rows.map(({ session }) => session.id)}
            />
          </Card>
        </div>
      </>
    ),
  } as const;
}

export const NewSession = ({ agent, words }: { agent: Agent; words: string }) => (
  <a class="button" href={`/console/agents/${agent.id}/sessions/new`}>
    {words}
  </a>
);

const rowOf = (budget: Budget) => [
  <a href={`/console/sessions/${budget.session.id}`}>
    <Time at={budget.session.createdAt} />
  </a>,
  <EndOf budget={budget} />,
  <BudgetCell budget={{ ...budget, end: null }} />,
  budget.session.warrantCount,
];

export async function showSession(visit: Visit<OfId>) {
  const found = await readSession(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(found)) return found;
  const { agent, budget } = found;
  return {
    title: "Spend session",
    section: "agents",
    content: (
      <>
        <div id="head" data-live={`sessions ${agent.id}`}>
          <Head
            title="Spend session"
            about={
              <>
                of <AgentLink agent={agent} />, <EndOf budget={budget} />
              </>
            }
            actions={mayManage(visit.caller) && budget.end === null ? <EndSession budget={budget} /> : null}
          />
        </div>
        <div id="used" class="stack" data-live={`sessions ${agent.id} ${warrantsOf(agent.id)}`}>
          <Card title="What is used">
            <Gauges budget={budget} />
          </Card>
          <Card title="What it allows" aside={<Id of={budget.session.id} />}>
            <Limits budget={budget} />
          </Card>
        </div>
      </>
    ),
  } as const;
}

export const EndSession = ({ budget: { session } }: { budget: Budget }) => (
  <a class="button danger" href={`/console/sessions/${session.id}/end`} data-dialog>
    End it
  </a>
);

export const showEndSession = (visit: Visit<OfId>) => endPage(visit, null);

async function endPage(visit: Visit<OfId>, refusal: Refusal | null) {
  const found = await readSession(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(found)) return found;
  const { agent, budget } = found;
  return {
    title: "End the session?",
    section: "agents",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation title="End the session?" back={`/console/agents/${agent.id}`} problem={refusal?.message}>
        {budget.session.revokedAt === null ? (
          <Form by={visit} action={`/console/sessions/${budget.session.id}/end`} label="Confirm">
            <ul class="consequences">
              <li>
                <Text of={agent.name} /> opens nothing more in its own name, until it has a new session.
              </li>
              <li>
                <strong>
                  <Limit of={budget.session.amountSpent} />
                </strong>{" "}
                of <Limit of={budget.session.amountCeiling} /> are held or paid under it. What is held stays
                held, and is settled as before.
              </li>
              <li>This cannot be undone, but a new session may have the same limits.</li>
            </ul>
            <button type="submit" class="danger wide">
              End the session
            </button>
          </Form>
        ) : (
          <Notice kind="note">It has ended already.</Notice>
        )}
      </Confirmation>
    ),
  } as const;
}

export async function sendEndSession(submission: Submission<OfId>) {
  const { ctx, caller, params } = submission;
  const answer = await revokeSession(ctx, caller, { session_id: params.id });
  return isRefusal(answer)
    ? endPage(submission, answer)
    : { to: `/console/agents/${answer.agent_id}?done=ended` };
}
