/** @jsxImportSource hono/jsx */
import { isRefusal } from "../../../core/errors.ts";
import { roleIsAtLeast } from "../../../core/roles.ts";
import { STATES } from "../../../core/warrant.ts";
import { type AgentDetail, readAgentDetail, type StatusChange } from "../../../services/console/agents.ts";
import { warrantsOf } from "../../../services/live/heard.ts";
import { Card, Empty, Facts, Head, Notice, Table, UndoLink } from "../../parts/blocks.tsx";
import { Amount, Id, Line, STATE_WORDS, StateBadge, Text, Time } from "../../parts/figures.tsx";
import { Gauge } from "../../parts/gauge.tsx";
import type { Visit } from "../../route.ts";
import { Gauges, Limits } from "./budget.tsx";
import { Keys, MakeKey } from "./keys.tsx";
import { EndSession, NewSession } from "./sessions.tsx";
import { changesFor, END_WORDS, mayManage, type OfId, STATUS_AFTER, StatusBadge } from "./words.tsx";

/** One agent: what it may spend and has spent, its failures, keys and warrants, and the switch to stop it. */

/** What the page says after something was done, by the word in its URL. */
const DONE: Readonly<Record<string, string>> = {
  created: "The agent is made. Give it a budget, then a key.",
  changed: "The agent is changed.",
  paused: "The agent is paused.",
  activated: "The agent is active.",
  killed: "The agent is killed, and what it held is frozen.",
  budgeted: "It has a new budget.",
  ended: "The session has ended.",
  revoked: "The key is revoked.",
};

export async function showAgent(visit: Visit<OfId>) {
  const detail = await readAgentDetail(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(detail)) return detail;
  const { agent } = detail;
  const done = DONE[visit.search.get("done") ?? ""];
  const live = `${agent.id} ${warrantsOf(agent.id)}`;
  return {
    title: agent.name,
    section: "agents",
    content: (
      <>
        <div id="head" data-live={agent.id}>
          <Head
            title={
              <>
                <Text of={agent.name} /> <StatusBadge status={agent.status} />
              </>
            }
            actions={<Actions visit={visit} detail={detail} />}
          />
        </div>
        {done ? (
          <Notice kind="done">
            {done} <UndoLink href={undoOf(visit, detail)} />
          </Notice>
        ) : null}
        <div id="warnings" class="stack" data-live={`${live} sessions`}>
          <Warnings visit={visit} detail={detail} />
        </div>
        <div class="columns">
          <div>
            <div id="budget" class="stack" data-live={`${live} sessions`}>
              <BudgetCard visit={visit} detail={detail} />
            </div>
            <div id="keys" class="stack" data-live="keys">
              <KeysCard visit={visit} detail={detail} />
            </div>
            <div id="warrants" class="stack" data-live={live}>
              <WarrantsCard detail={detail} />
            </div>
          </div>
          <div id="facts" data-live={`${live} policies`}>
            <FailuresCard detail={detail} />
            <StatesCard detail={detail} />
            <DetailsCard detail={detail} />
          </div>
        </div>
      </>
    ),
  } as const;
}

/** Where the change that was just made is taken back; null where it cannot be, or where this person may not. */
function undoOf({ caller, search }: Visit, { agent }: AgentDetail): string | null {
  const was = search.get("was");
  const back = changesFor(agent, caller).find((change) => STATUS_AFTER[change] === was);
  return back === undefined ? null : `/console/agents/${agent.id}/${back}`;
}

const CHANGE_WORDS = { pause: "Pause", activate: "Activate", kill: "Kill" } as const;

const Actions = ({ visit, detail: { agent } }: { visit: Visit; detail: AgentDetail }) => (
  <>
    {agent.status === "active" && roleIsAtLeast(visit.caller.role, "operator") ? (
      <a class="button" href={`/console/warrants/new?agent=${agent.id}`}>
        Open a warrant
      </a>
    ) : null}
    {mayManage(visit.caller) ? (
      <a class="button" href={`/console/agents/${agent.id}/edit`} data-dialog>
        Change
      </a>
    ) : null}
    {changesFor(agent, visit.caller).map((change: StatusChange) => (
      <a
        class={change === "kill" ? "button danger" : "button"}
        href={`/console/agents/${agent.id}/${change}`}
        data-dialog
      >
        {CHANGE_WORDS[change]}
      </a>
    ))}
  </>
);

/** What keeps the agent from its work, and what its budget does not hold. */
const Warnings = ({ visit, detail: { agent, budget, counts } }: { visit: Visit; detail: AgentDetail }) => (
  <>
    {agent.status === "killed" ? (
      <Notice kind="note">
        It is killed: its keys only read. Frozen warrants that name it: {counts.frozen ?? 0}.{" "}
        <a href="/console/escalations">See what waits for a person</a>
      </Notice>
    ) : null}
    {agent.status === "paused" ? (
      <Notice kind="note">
        It is paused
        {agent.failureCount >= agent.failureBudget
          ? `: ${agent.failureCount} of ${agent.failureBudget} failures in a row`
          : ""}
        . Its keys open nothing, and still verify.
      </Notice>
    ) : null}
    {budget && budget.end !== null ? (
      <Notice kind="note">
        Its last session {budget.end === "revoked" ? "was ended" : END_WORDS[budget.end]}: it opens nothing in
        its own name until it has a new one.
      </Notice>
    ) : null}
    {agent.mustBeNamed ? null : (
      <Notice kind="note">
        Its keys may open warrants without naming it, and no session limits those.
        {mayManage(visit.caller) ? (
          <>
            {" "}
            <a href={`/console/agents/${agent.id}/edit`} data-dialog>
              Make it an agent that must be named
            </a>
          </>
        ) : null}
      </Notice>
    )}
  </>
);

const BudgetCard = ({ visit, detail: { agent, budget } }: { visit: Visit; detail: AgentDetail }) => {
  const may = mayManage(visit.caller);
  const all = budget ? <a href={`/console/agents/${agent.id}/sessions`}>All sessions</a> : null;
  if (budget === null || budget.end !== null) {
    return (
      <Card title="Budget" aside={all}>
        <Empty title={budget === null ? "No budget" : "No budget any more"}>
          <p>
            {budget === null
              ? "It may hold all that is available. A spend session limits that: how much, how often, to whom, and until when."
              : "A new session begins with the limits of the last one."}
          </p>
          {may ? <NewSession agent={agent} words="Give it a budget" /> : null}
        </Empty>
      </Card>
    );
  }
  return (
    <Card title="Budget" aside={all}>
      <Gauges budget={budget} />
      <Limits budget={budget} />
      {may ? (
        <p class="actions">
          <NewSession agent={agent} words="Replace it" />
          <EndSession budget={budget} />
        </p>
      ) : null}
    </Card>
  );
};

const KeysCard = ({ visit, detail: { agent, keys } }: { visit: Visit; detail: AgentDetail }) =>
  keys === null ? null : (
    <Card
      title="API keys"
      aside={keys.isAll ? null : <a href={`/console/agents/${agent.id}/keys`}>All keys</a>}
    >
      <Keys keys={keys.newest} now={visit.ctx.now()} make={<MakeKey visit={visit} agent={agent} />} />
      {keys.newest.length > 0 ? <MakeKey visit={visit} agent={agent} /> : null}
    </Card>
  );

const WarrantsCard = ({ detail: { agent, warrants } }: { detail: AgentDetail }) => (
  <Card
    title="Latest warrants"
    aside={warrants.length > 0 ? <a href={`/console/warrants?agent=${agent.id}`}>All warrants</a> : null}
  >
    {warrants.length === 0 ? (
      <Empty title="No warrant names it yet">
        <p>What its keys open in its name (agent_id) is listed here.</p>
      </Empty>
    ) : (
      <Table
        label="Latest warrants"
        columns={["Payee", "Amount", "State", "Opened"]}
        numbers={["Amount"]}
        rows={warrants.map((warrant) => [
          <a href={`/console/warrants/${warrant.id}`}>
            <Line of={warrant.payee} />
          </a>,
          <Amount of={warrant.amount} asset={warrant.asset} />,
          <StateBadge state={warrant.state} />,
          <Time at={warrant.openedAt} />,
        ])}
      />
    )}
  </Card>
);

const FailuresCard = ({ detail: { agent } }: { detail: AgentDetail }) => (
  <Card title="Failures">
    <Gauge
      label="In a row"
      used={BigInt(agent.failureCount)}
      max={BigInt(agent.failureBudget)}
      words={`${agent.failureCount} of ${agent.failureBudget}`}
    />
    <p class="hint">
      A check that is no clean pass adds one, and so does an expiry. A clean pass that settles sets it to
      zero. At the end of its budget it pauses.
    </p>
  </Card>
);

const StatesCard = ({ detail: { agent, counts } }: { detail: AgentDetail }) => {
  const some = STATES.filter((state) => (counts[state] ?? 0) > 0);
  return some.length === 0 ? null : (
    <Card title="Warrants that name it">
      <Facts
        of={some.map((state) => [
          STATE_WORDS[state],
          <a href={`/console/warrants?agent=${agent.id}&state=${state}`}>{counts[state]}</a>,
        ])}
      />
    </Card>
  );
};

const DetailsCard = ({ detail: { agent, identity, policy } }: { detail: AgentDetail }) => (
  <Card title="Details">
    <Facts
      of={[
        ["Id", <Id of={agent.id} />],
        ["Identity", <Id of={identity} />],
        ["Must be named", agent.mustBeNamed ? "yes" : "no"],
        [
          "Policy",
          policy ? (
            <>
              <Text of={`${policy.name}, version ${policy.version}`} />
              {policy.agentId === null ? <span class="quiet"> of the organisation</span> : null}
            </>
          ) : (
            "the built-in one"
          ),
        ],
        ["Made", <Time at={agent.createdAt} />],
      ]}
    />
  </Card>
);
