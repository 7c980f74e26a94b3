/** @jsxImportSource hono/jsx */
import type { Agent } from "../../core/agent.ts";
import type { Flip, ReleasedMore } from "../../core/back-test.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { type BackTest, FLIPS_LISTED } from "../../services/console/back-test.ts";
import { outcomeWords } from "./bands.tsx";
import { Card, Empty, Table } from "./blocks.tsx";
import { Amount, Line, StateBadge, Text } from "./figures.tsx";
import type { Markup } from "./markup.ts";

/** What a back-test has found: how many checks would flip, how much more is released, and each of them. */

type TestedProps = {
  mode: Mode;
  /** The agent that the draft is for; null for the organisation. */
  agent: Pick<Agent, "name"> | null;
  test: BackTest;
  /** How many flips come before the page of them. */
  offset: number;
  /** A button that asks for the page of flips after this many. */
  page: (offset: number, words: string) => Markup;
};

export const Tested = ({ mode, agent, test, offset, page }: TestedProps) => {
  const { looked, isPartial, flipped, flips, released } = test;
  const checks = `${counted(looked)} ${looked === 1 ? "check" : "checks"}`;
  return (
    <Card title="Back-test">
      {looked === 0 ? (
        <Empty title={`No check is stored in ${mode}`}>
          <p>
            Verify a warrant, or switch to the other mode. Until then the draft has nothing to be tried on.
          </p>
        </Empty>
      ) : (
        <>
          <p class="verdict" role="status">
            {counted(flipped)} of {checks} would flip{flipped === 0 ? "." : ", "}
            <Released of={released} />
          </p>
          <p class="quiet">
            {isPartial ? `The newest ${checks} of ` : "All checks of "}
            {mode}
            {agent === null ? "" : ", of "}
            {agent === null ? null : <Text of={agent.name} />}
            {isPartial ? "; older ones were not looked at" : ""}. What people decided afterwards is not
            counted: each row says where its warrant is today.
          </p>
          {flips.length === 0 ? null : <Flips flips={flips} />}
          <FlipPages offset={offset} flipped={flipped} page={page} />
        </>
      )}
    </Card>
  );
};

/** Each page is back-tested again, since nothing is kept of a draft. */
const FlipPages = ({ offset, flipped, page }: Pick<TestedProps, "offset" | "page"> & { flipped: number }) =>
  flipped <= FLIPS_LISTED ? null : (
    <nav class="pager" aria-label="Flips">
      {offset > 0 ? page(Math.max(0, offset - FLIPS_LISTED), "← Back") : <span />}
      {offset + FLIPS_LISTED < flipped ? page(offset + FLIPS_LISTED, "More →") : <span />}
    </nav>
  );

const counted = (count: number): string => count.toLocaleString("en-GB");

/** `+84.00 USDC released`, or what is released no more. */
const Released = ({ of }: { of: ReleasedMore }) => (
  <>
    {[...of].map(([asset, sum], at) => (
      <>
        {at === 0 ? "" : ", "}
        <Difference of={sum} asset={asset} />
      </>
    ))}
    {of.size === 0 ? "" : " released"}
  </>
);

const Difference = ({ of, asset }: { of: bigint; asset: string }) => (
  <span class="amount" title={`${of} in the smallest unit of ${asset}`}>
    {of < 0n ? "−" : "+"}
    {displayAmount(of < 0n ? -of : of, asset).replace(/ (?=[^ ]+$)/, "\u00a0")}
  </span>
);

const Flips = ({ flips }: { flips: readonly Flip[] }) => (
  <Table
    label="What would flip"
    columns={["Warrant", "Amount", "Decided", "By the draft", "Released", "Today"]}
    numbers={["Amount", "Released"]}
    rows={flips.map(({ check, before, after }) => [
      <a href={`/console/warrants/${check.warrantId}`}>
        <Line of={check.payee} />
      </a>,
      <Amount of={check.amount} asset={check.asset} />,
      outcomeWords(before.outcome, before.releasedBps),
      outcomeWords(after.outcome, after.releasedBps),
      <Difference of={after.paid - before.paid} asset={check.asset} />,
      <StateBadge state={check.state} />,
    ])}
  />
);
