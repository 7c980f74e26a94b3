/** @jsxImportSource hono/jsx */
import { AGENT_STATUSES } from "../../../core/agent.ts";
import { isRefusal, type Refusal, statusOf } from "../../../core/errors.ts";
import { setAgentStatus } from "../../../services/admin/agents.ts";
import {
  type Consequences,
  readConsequences,
  type StatusChange,
  type Sums,
} from "../../../services/console/agents.ts";
import { Notice } from "../../parts/blocks.tsx";
import { Confirmation } from "../../parts/confirmation.tsx";
import { Amount, Text, Time } from "../../parts/figures.tsx";
import { Form } from "../../parts/forms.tsx";
import type { Markup } from "../../parts/markup.ts";
import type { Submission, Visit } from "../../route.ts";
import { changesFor, type OfId, STATUS_AFTER } from "./words.tsx";

/** The confirmations of pause, activate and kill: which warrants they move, and how much money is in them. */

const DONE = { pause: "paused", activate: "activated", kill: "killed" } as const;
const TITLES = { pause: "Pause", activate: "Activate", kill: "Kill" } as const;
const BUTTONS = { pause: "Pause it", activate: "Activate it", kill: "Kill it" } as const;

/** The confirmation of a change. */
export const showStatusChange = (change: StatusChange) => (visit: Visit<OfId>) =>
  statusPage(visit, change, null);

async function statusPage(visit: Visit<OfId>, change: StatusChange, refusal: Refusal | null) {
  const found = await readConsequences(visit.ctx, visit.caller, visit.params.id, change);
  if (isRefusal(found)) return found;
  const { agent } = found;
  return {
    title: `${TITLES[change]} ${agent.name}?`,
    section: "agents",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation
        title={
          <span>
            {TITLES[change]} <Text of={agent.name} />?
          </span>
        }
        back={`/console/agents/${agent.id}`}
        problem={refusal?.message}
      >
        {changesFor(agent, visit.caller).includes(change) ? (
          <Form by={visit} action={`/console/agents/${agent.id}/${change}`} label="Confirm">
            <ul class="consequences">
              {consequencesOf(change, found).map((words) => (
                <li>{words}</li>
              ))}
            </ul>
            <Some of={found} change={change} />
            <input type="hidden" name="was" value={agent.status} />
            <button type="submit" class={change === "kill" ? "danger wide" : "primary wide"}>
              {BUTTONS[change]}
            </button>
          </Form>
        ) : (
          <Notice kind="note">
            {agent.status === STATUS_AFTER[change]
              ? `The agent is ${agent.status} already.`
              : "An admin or owner does this."}
          </Notice>
        )}
      </Confirmation>
    ),
  } as const;
}

/** Such as "3 warrants with 8.40 USDC". */
const Holding = ({ of: { count, amounts, isAll } }: { of: Sums }) => (
  <strong>
    {isAll ? "" : "more than "}
    {count} {count === 1 ? "warrant" : "warrants"} with{" "}
    {amounts.map(({ asset, amount }, at) => (
      <>
        {at === 0 ? "" : at === amounts.length - 1 ? " and " : ", "}
        <Amount of={amount} asset={asset} />
      </>
    ))}
  </strong>
);

const pausedOfActive = (held: Sums): readonly Markup[] => [
  "Its keys open no more warrants and buy nothing. They still verify and read.",
  held.count === 0 ? (
    "It holds nothing now."
  ) : (
    <>
      What it holds stays held, and goes on as before: <Holding of={held} />.
    </>
  ),
  "An admin or owner makes it active again.",
];

const pausedOfKilled = (frozen: Sums): readonly Markup[] => [
  "Its keys may verify again, and what passes is paid. They still open nothing.",
  frozen.count === 0 ? (
    "No warrant of it is frozen."
  ) : (
    <>
      What is frozen stays so until it is active, or a person decides: <Holding of={frozen} />.
    </>
  ),
];

/** What a change does, a sentence each. */
function consequencesOf(change: StatusChange, { agent, moving, staying }: Consequences): readonly Markup[] {
  switch (change) {
    case "pause":
      return agent.status === "killed" ? pausedOfKilled(staying) : pausedOfActive(staying);
    case "kill":
      return [
        "Its keys open nothing and verify nothing any more: they only read.",
        moving.count === 0 ? (
          "It holds nothing now, so no warrant freezes."
        ) : (
          <>
            What it holds freezes, whether a warrant names it or its keys opened it: <Holding of={moving} />.
            Nothing of that is paid until a person decides each of them, or the agent is active again.
          </>
        ),
        "A check that is under way may end, but what it would pay waits for a person too.",
        "What was paid stays paid. An admin or owner can make it active again.",
      ];
    case "activate":
      return [
        agent.failureCount === 0
          ? "Its keys may open warrants again, within its session."
          : `Its keys may open warrants again, within its session. Its count of failures in a row, ${agent.failureCount} now, starts at zero.`,
        moving.count === 0 ? (
          "No frozen warrant is held again."
        ) : (
          <>
            What is frozen is held again, and may be paid: <Holding of={moving} />, unless another agent of a
            warrant is not active.
          </>
        ),
        ...(staying.count === 0
          ? []
          : [
              <>
                What is past its deadline stays frozen, and a person decides: <Holding of={staying} />.
              </>,
            ]),
      ];
  }
}

/** The first of the warrants that move, and how many more there are. */
const Some = ({ of: { some, moving }, change }: { of: Consequences; change: StatusChange }) =>
  some.length === 0 ? null : (
    <ul
      class="steps"
      aria-label={change === "kill" ? "Warrants that freeze" : "Warrants that are held again"}
    >
      {some.map((warrant) => (
        <li>
          <a href={`/console/warrants/${warrant.id}`}>
            <Text of={warrant.payee.slice(0, 60)} />
          </a>
          <span>
            <Amount of={warrant.amount} asset={warrant.asset} />
          </span>
          <Time at={warrant.deadline} />
        </li>
      ))}
      {moving.count > some.length ? <li class="quiet">and {moving.count - some.length} more</li> : null}
    </ul>
  );

export const sendStatusChange = (change: StatusChange) => async (submission: Submission<OfId>) => {
  const { ctx, caller, fields, params } = submission;
  const was = AGENT_STATUSES.find((status) => status === fields.was);
  const answer = await setAgentStatus(ctx, caller, { agent_id: params.id, status: STATUS_AFTER[change] });
  return isRefusal(answer)
    ? statusPage(submission, change, answer)
    : { to: `/console/agents/${params.id}?done=${DONE[change]}${was ? `&was=${was}` : ""}` };
};
