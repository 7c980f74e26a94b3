/** @jsxImportSource hono/jsx */
import type { Budget } from "../../../services/console/agents.ts";
import { Facts } from "../../parts/blocks.tsx";
import { Text, Time } from "../../parts/figures.tsx";
import { Gauge } from "../../parts/gauge.tsx";
import { EndOf, Limit } from "./words.tsx";

/** What a spend session allows, and what is used of it. */

/** An amount of a limit. */
const Used = ({ label, used, max }: { label: string; used: bigint; max: bigint }) => (
  <Gauge
    label={label}
    used={used}
    max={max}
    words={
      <>
        <Limit of={used} /> of <Limit of={max} />
      </>
    }
  />
);

const Count = ({ label, used, max }: { label: string; used: number; max: number }) => (
  <Gauge label={label} used={BigInt(used)} max={BigInt(max)} words={`${used} of ${max}`} />
);

export const Gauges = ({ budget: { session, hourUsed, dayUsed } }: { budget: Budget }) => (
  <div class="gauges">
    <Used label="Held or paid" used={session.amountSpent} max={session.amountCeiling} />
    {session.hourlyMax === null || hourUsed === null ? null : (
      <Used label="In an hour" used={hourUsed} max={session.hourlyMax} />
    )}
    {session.dailyMax === null || dayUsed === null ? null : (
      <Used label="In a day" used={dayUsed} max={session.dailyMax} />
    )}
    {session.warrantLimit === null ? null : (
      <Count label="Warrants" used={session.warrantCount} max={session.warrantLimit} />
    )}
    <Count label="Failures in a row" used={session.failureCount} max={session.failureBudget} />
  </div>
);

/** The limits that have no gauge. */
export const Limits = ({ budget }: { budget: Budget }) => {
  const { session } = budget;
  return (
    <Facts
      of={[
        [
          "For a warrant",
          session.perWarrantMax === null ? "any amount" : <Limit of={session.perWarrantMax} />,
        ],
        ["Payees", <Allowed of={session.payees} all="everybody" />],
        ["Sources", <Allowed of={session.sourceOrigins} all="every origin" />],
        ...(session.warrantLimit === null
          ? [["Warrants", `${session.warrantCount}, of any number`] as const]
          : []),
        ["Made", <Time at={session.createdAt} />],
        ["State", <EndOf budget={budget} />],
      ]}
    />
  );
};

const Allowed = ({ of, all }: { of: readonly string[] | null; all: string }) =>
  of === null ? (
    <span>{all}</span>
  ) : (
    <span class="reasons">
      {of.map((entry) => (
        <span class="reason">
          <Text of={entry} />
        </span>
      ))}
    </span>
  );
