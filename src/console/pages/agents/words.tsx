/** @jsxImportSource hono/jsx */
import type { Agent, AgentStatus } from "../../../core/agent.ts";
import { ACCESS, type PersonCaller, roleIsAtLeast } from "../../../core/roles.ts";
import { LIMIT_ASSET } from "../../../services/console/agent-input.ts";
import {
  type Budget,
  type ListedAgent,
  STATUS_CHANGES,
  type StatusChange,
} from "../../../services/console/agents.ts";
import type { PageAsked, RowsOfPage } from "../../../services/console/paging.ts";
import { Pager } from "../../parts/blocks.tsx";
import { Amount, Badge, Text, Time } from "../../parts/figures.tsx";
import { Bar } from "../../parts/gauge.tsx";

/** What the pages of agents have in common. */

export type OfId = { readonly id: string };

export const mayManage = ({ role }: PersonCaller): boolean => roleIsAtLeast(role, ACCESS.administer.role);

export const AgentLink = ({ agent }: { agent: Pick<Agent, "id" | "name"> }) => (
  <a href={`/console/agents/${agent.id}`}>
    <Text of={agent.name} />
  </a>
);

export const StatusBadge = ({ status }: { status: AgentStatus }) => (
  <Badge look={`agent-${status}`} of={status} />
);

/** The changes of status that this person may make now. */
export const changesFor = (
  { status }: { status: AgentStatus },
  { role }: PersonCaller,
): readonly StatusChange[] =>
  STATUS_CHANGES.filter((change) => {
    const access = change === "pause" && status === "active" ? ACCESS.pauseAgent : ACCESS.administer;
    return roleIsAtLeast(role, access.role) && status !== STATUS_AFTER[change];
  });

export const STATUS_AFTER = { pause: "paused", activate: "active", kill: "killed" } as const;

/** An amount of a session. */
export const Limit = ({ of }: { of: bigint }) => <Amount of={of} asset={LIMIT_ASSET} />;

/** How much of its budget an agent has used, in a list. */
export const BudgetCell = ({ budget }: Pick<ListedAgent, "budget">) => {
  if (budget === null) return <span class="quiet">no session</span>;
  const { session, end } = budget;
  if (end !== null) return <span class="quiet">session {END_WORDS[end]}</span>;
  return (
    <span class="gauge">
      <span>
        <Limit of={session.amountSpent} /> of <Limit of={session.amountCeiling} />
      </span>
      <Bar used={session.amountSpent} max={session.amountCeiling} />
    </span>
  );
};

export const END_WORDS = { revoked: "ended", expired: "expired" } as const satisfies Record<
  NonNullable<Budget["end"]>,
  string
>;

/** When a session ends, or how it ended. */
export const EndOf = ({ budget: { session, end } }: { budget: Budget }) =>
  end === null ? (
    <>
      live until <Time at={session.expiresAt} />
    </>
  ) : (
    <>
      {END_WORDS[end]} <Time at={session.revokedAt ?? session.expiresAt} />
    </>
  );

/** Where a page of a list begins, as its address says it. */
export const pageAskedOf = (search: URLSearchParams): PageAsked => ({
  olderThan: search.get("after") || null,
  newerThan: search.get("before") || null,
});

/** Leads through a list whose rows have these ids. */
export const PagerOf = ({
  path,
  page,
  ids,
}: {
  path: string;
  page: Omit<RowsOfPage<unknown>, "rows">;
  ids: readonly string[];
}) => {
  const [first, last] = [ids.at(0), ids.at(-1)];
  return (
    <Pager
      newer={page.hasNewer ? (first ? `${path}?before=${first}` : path) : null}
      older={page.hasOlder && last ? `${path}?after=${last}` : null}
    />
  );
};
