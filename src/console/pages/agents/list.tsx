/** @jsxImportSource hono/jsx */
import { AGENT_STATUSES } from "../../../core/agent.ts";
import { isRefusal } from "../../../core/errors.ts";
import {
  type AgentsAsked,
  type AgentsPage,
  type ListedAgent,
  listAgentsForPeople,
} from "../../../services/console/agents.ts";
import { Card, Empty, Head, Pager, Table } from "../../parts/blocks.tsx";
import { Line } from "../../parts/figures.tsx";
import { Filters } from "../../parts/filters.tsx";
import { Choose, Field } from "../../parts/forms.tsx";
import type { Visit } from "../../route.ts";
import { BudgetCell, mayManage, pageAskedOf, StatusBadge } from "./words.tsx";

/** The list of agents. Its filters are in the URL. */

const askedOf = (search: URLSearchParams): AgentsAsked => ({
  ...pageAskedOf(search),
  status: AGENT_STATUSES.find((status) => status === search.get("status")) ?? null,
  search: (search.get("q") ?? "").trim().slice(0, 200),
});

/** The same list with another cursor. */
function pathOf({ search, status }: AgentsAsked, cursor: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams({
    ...(search !== "" && { q: search }),
    ...(status !== null && { status }),
    ...cursor,
  });
  return query.size > 0 ? `/console/agents?${query}` : "/console/agents";
}

export async function showAgents(visit: Visit) {
  const asked = askedOf(visit.search);
  const page = await listAgentsForPeople(visit.ctx, visit.caller, asked);
  if (isRefusal(page)) return page;
  const mayCreate = mayManage(visit.caller);
  return {
    title: "Agents",
    section: "agents",
    content: (
      <>
        <Head
          title="Agents"
          about="Programs that spend, each within its budget"
          actions={
            mayCreate ? (
              <a class="button primary" href="/console/agents/new">
                Make an agent
              </a>
            ) : null
          }
        />
        <Card>
          <AgentFilters asked={asked} />
          <div id="results" data-live="agents warrants sessions">
            <Results asked={asked} page={page} mayCreate={mayCreate} mode={visit.caller.mode} />
          </div>
        </Card>
      </>
    ),
  } as const;
}

const STATUSES = [
  { value: "", words: "Any" },
  { value: "active", words: "Active" },
  { value: "paused", words: "Paused" },
  { value: "killed", words: "Killed" },
];

const AgentFilters = ({ asked }: { asked: AgentsAsked }) => (
  <Filters path="/console/agents" typed="q">
    <Field
      name="q"
      label="Search"
      type="search"
      value={asked.search}
      attributes={{ placeholder: "Id or name", maxlength: "200" }}
    />
    <Choose name="status" label="Status" value={asked.status ?? ""} choices={STATUSES} />
  </Filters>
);

type ResultsProps = {
  asked: AgentsAsked;
  page: AgentsPage;
  mayCreate: boolean;
  mode: string;
};

const Results = ({ asked, page, mayCreate, mode }: ResultsProps) => {
  const { rows, searchedTo } = page;
  if (rows.length === 0 && searchedTo === null)
    return <Nothing asked={asked} mayCreate={mayCreate} mode={mode} />;
  return (
    <>
      {rows.length === 0 ? <p class="quiet">None among those. The search goes on with older ones.</p> : null}
      <Table
        label="Agents"
        columns={["Agent", "Status", "Budget", "Failures", "Warrants"]}
        numbers={["Failures", "Warrants"]}
        rows={rows.map(rowOf)}
      />
      <Pager newer={newerPath(asked, page)} older={olderPath(asked, page)} />
    </>
  );
};

const rowOf = ({ agent, budget, counts }: ListedAgent) => [
  <a href={`/console/agents/${agent.id}`}>
    <Line of={agent.name} />
  </a>,
  <StatusBadge status={agent.status} />,
  <BudgetCell budget={budget} />,
  `${agent.failureCount} of ${agent.failureBudget}`,
  Object.values(counts).reduce((sum, one) => sum + one, 0),
];

const Nothing = ({ asked, mayCreate, mode }: Omit<ResultsProps, "page">) =>
  asked.search === "" && asked.status === null ? (
    <Empty title={`No agents in ${mode} yet`}>
      <p>An agent is a program that spends: it has keys of its own, a budget, and a switch to stop it.</p>
      {mayCreate ? (
        <a class="button primary" href="/console/agents/new">
          Make the first one
        </a>
      ) : null}
    </Empty>
  ) : (
    <Empty title="No agent is like that">
      <p>
        Try a part of the name, or another status. <a href="/console/agents">Show all</a>
      </p>
    </Empty>
  );

function newerPath(asked: AgentsAsked, { rows, hasNewer }: AgentsPage): string | null {
  const first = rows.at(0);
  if (!hasNewer) return null;
  return first ? pathOf(asked, { before: first.agent.id }) : pathOf(asked, {});
}

function olderPath(asked: AgentsAsked, { rows, hasOlder, searchedTo }: AgentsPage): string | null {
  const last = searchedTo ?? rows.at(-1)?.agent.id;
  return hasOlder && last !== undefined ? pathOf(asked, { after: last }) : null;
}
