/** @jsxImportSource hono/jsx */
import { isRefusal } from "../../core/errors.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { STATES, type State, type Warrant } from "../../core/warrant.ts";
import { PAGE_SIZE } from "../../services/console/paging.ts";
import {
  type AgentName,
  type ListAsked,
  type ListedPage,
  listWarrantsForPeople,
} from "../../services/console/warrant-list.ts";
import { Card, Empty, Head, Pager, Table } from "../parts/blocks.tsx";
import { choicesOf } from "../parts/choices.ts";
import { Amount, Line, STATE_WORDS, StateBadge, Time } from "../parts/figures.tsx";
import { Filters } from "../parts/filters.tsx";
import { Choose, Field } from "../parts/forms.tsx";
import type { Visit } from "../route.ts";

/** The list of warrants. Its filters are in the URL, so that a list can be kept and sent to somebody. */

const OFFSET_MAX = 100_000;

/** What the URL asks for. What it says wrongly is as if it said nothing: a person has no use for an error there. */
function askedOf(search: URLSearchParams): ListAsked {
  const value = (name: string) => search.get(name) || null;
  const offset = Number(search.get("offset") ?? 0);
  return {
    state: STATES.find((state) => state === search.get("state")) ?? null,
    agentId: value("agent"),
    sort: search.get("sort") === "deadline" ? "deadline" : "created",
    search: (search.get("q") ?? "").trim().slice(0, 200),
    olderThan: value("after"),
    newerThan: value("before"),
    offset: Number.isInteger(offset) && offset >= 0 && offset <= OFFSET_MAX ? offset : 0,
  };
}

/** The same list with other cursors. */
function pathOf(
  { state, agentId, sort, search }: ListAsked,
  cursor: Readonly<Record<string, string>>,
): string {
  const query = new URLSearchParams({
    ...(search !== "" && { q: search }),
    ...(state !== null && { state }),
    ...(agentId !== null && { agent: agentId }),
    ...(sort !== "created" && { sort }),
    ...cursor,
  });
  return query.size > 0 ? `/console/warrants?${query}` : "/console/warrants";
}

export async function showWarrants(visit: Visit) {
  const asked = askedOf(visit.search);
  const listed = await listWarrantsForPeople(visit.ctx, visit.caller, asked);
  if (isRefusal(listed)) return listed;
  const { page, agents } = listed;
  const mayOpen = roleIsAtLeast(visit.caller.role, "operator");
  return {
    title: "Warrants",
    section: "warrants",
    content: (
      <>
        <Head
          title="Warrants"
          actions={
            mayOpen ? (
              <a class="button primary" href="/console/warrants/new">
                Open a warrant
              </a>
            ) : null
          }
        />
        <Card>
          <WarrantFilters asked={asked} agents={agents} />
          <div id="results" data-live="warrants">
            <Results asked={asked} page={page} agents={agents} mayOpen={mayOpen} />
          </div>
        </Card>
      </>
    ),
  } as const;
}

const ANY = { value: "", words: "Any" };

const WarrantFilters = ({ asked, agents }: { asked: ListAsked; agents: readonly AgentName[] }) => (
  <Filters path="/console/warrants" typed="q">
    <Field
      name="q"
      label="Search"
      type="search"
      value={asked.search}
      attributes={{ placeholder: "Id, payee or agent", maxlength: "200" }}
    />
    <Choose
      name="state"
      label="State"
      value={asked.state ?? ""}
      choices={[ANY, ...STATES.map((state: State) => ({ value: state, words: STATE_WORDS[state] }))]}
    />
    <Choose
      name="agent"
      label="Agent"
      value={asked.agentId ?? ""}
      choices={choicesOf(agents, ANY.words, asked.agentId)}
    />
    <Choose
      name="sort"
      label="Order"
      value={asked.sort}
      choices={[
        { value: "created", words: "Newest first" },
        { value: "deadline", words: "Soonest deadline" },
      ]}
    />
  </Filters>
);

type ResultsProps = {
  asked: ListAsked;
  page: ListedPage;
  agents: readonly AgentName[];
  mayOpen: boolean;
};

const Results = ({ asked, page, agents, mayOpen }: ResultsProps) => {
  const { warrants } = page;
  if (warrants.length === 0 && page.searchedTo === null) return <Nothing asked={asked} mayOpen={mayOpen} />;
  const names = new Map(agents.map(({ id, name }) => [id, name]));
  return (
    <>
      {warrants.length === 0 ? (
        <p class="quiet">None among those. The search goes on with older ones.</p>
      ) : null}
      <Table
        label="Warrants"
        columns={["Payee", "Amount", "State", "Deadline", "Agent", "Opened"]}
        wide={["Agent", "Opened"]}
        numbers={["Amount"]}
        rows={warrants.map((warrant) => rowOf(warrant, names))}
      />
      <Pager newer={newerPath(asked, page)} older={olderPath(asked, page)} />
    </>
  );
};

const rowOf = (warrant: Warrant, names: ReadonlyMap<string, string>) => [
  <a href={`/console/warrants/${warrant.id}`}>
    <Line of={warrant.payee} />
  </a>,
  <Amount of={warrant.amount} asset={warrant.asset} />,
  <StateBadge state={warrant.state} />,
  <Time at={warrant.deadline} />,
  warrant.agentId === null ? (
    <span class="quiet">none</span>
  ) : (
    <Line of={names.get(warrant.agentId) ?? warrant.agentId} />
  ),
  <Time at={warrant.openedAt} />,
];

const Nothing = ({ asked, mayOpen }: { asked: ListAsked; mayOpen: boolean }) =>
  asked.search === "" && asked.state === null && asked.agentId === null ? (
    <Empty title="No warrants yet">
      <p>A warrant holds money against a promise, and pays when the promise is kept.</p>
      {mayOpen ? (
        <a class="button primary" href="/console/warrants/new">
          Open the first one
        </a>
      ) : null}
    </Empty>
  ) : (
    <Empty title="No warrant is like that">
      <p>
        Try another state, or a part of the payee's name. <a href="/console/warrants">Show all</a>
      </p>
    </Empty>
  );

function newerPath(asked: ListAsked, { warrants, hasNewer }: ListedPage): string | null {
  if (!hasNewer) return null;
  if (asked.sort === "deadline")
    return pathOf(asked, { offset: String(Math.max(0, asked.offset - PAGE_SIZE)) });
  const first = warrants.at(0);
  return first ? pathOf(asked, { before: first.id }) : pathOf(asked, {});
}

function olderPath(asked: ListAsked, { warrants, hasOlder, searchedTo }: ListedPage): string | null {
  if (!hasOlder) return null;
  if (searchedTo !== null) return pathOf(asked, { after: searchedTo });
  if (asked.sort === "deadline") return pathOf(asked, { offset: String(asked.offset + PAGE_SIZE) });
  const last = warrants.at(-1);
  return last ? pathOf(asked, { after: last.id }) : null;
}
