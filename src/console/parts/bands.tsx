/** @jsxImportSource hono/jsx */
import { scaleLinear } from "d3-scale";
import type { Decided } from "../../core/back-test.ts";
import { type Band, type PolicyRules, paidBpsOf } from "../../core/policy.ts";
import {
  type Always,
  hiddenBands,
  isUnchanged,
  type PolicyChanges,
  type Span,
  type Stretch,
  spansOf,
} from "../../core/policy-spans.ts";
import { Table } from "./blocks.tsx";
import { Amount, Badge, percent, Reason, Text } from "./figures.tsx";
import type { Markup } from "./markup.ts";

/** The bands of a policy: as a picture on a line from 0 to 1, in words, and beside those of another version. */

const SIZE = { width: 420, height: 60, left: 4, right: 24, top: 4, bar: 32, text: 54 };
/** The score of 1 is a point. It is drawn this wide, so that a band for it alone can be seen. */
const CAP = 20;
/** Numbers under the line that are nearer to each other than this would run together. */
const APART = 30;
/** A word needs so much room for each letter. */
const LETTER = 8;

/** What a band does, in words. */
export const outcomeWords = (outcome: Decided["outcome"], releasedBps: number): string => {
  switch (outcome) {
    case "release":
      return "Release";
    case "partial_release":
      return `Release ${percent(releasedBps)}`;
    case "escalate":
      return "Escalate";
    case "refund":
      return "Refund";
    case "not_opened":
      return "Not opened";
  }
};

const bandWords = (band: Band): string => outcomeWords(band.outcome, paidBpsOf(band));

/** Which scores: `1`, `0.5 to 1`, `0.25 to below 0.5`. */
const scoresOf = ({ from, to, isClosed }: Stretch): string => {
  if (from === 1) return "1";
  return isClosed ? `${from} to 1` : `${from} to below ${to}`;
};

/** The line from 0 to 1, coloured by what happens there. */
export const BandLine = ({ rules, title }: { rules: PolicyRules; title: string }) => {
  const { width, height, left, right, top, bar, text } = SIZE;
  const x = scaleLinear()
    .domain([0, 1])
    .range([left, width - right]);
  const spans = spansOf(rules);
  const scores = spans.map(scoresOf);
  const said = spans.map((span, at) => `${scores[at]}: ${bandWords(span.band)}`).join("; ");
  const endOf = ({ to, isClosed }: Span) => (isClosed ? x(1) + CAP : x(to));
  let lastTick = Number.NEGATIVE_INFINITY;
  return (
    <svg
      class="chart bands-line"
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${title}. ${said}`}
    >
      {spans.map((span, at) => {
        const [start, end] = [x(span.from), endOf(span)];
        const words = bandWords(span.band);
        return (
          <g>
            <title>{`${scores[at]}: ${words}${span.band.label ? ` (${span.band.label})` : ""}`}</title>
            <rect
              class={`band ${span.band.outcome}`}
              x={start}
              y={top}
              width={Math.max(2, end - start - 2)}
              height={bar}
              rx="3"
            />
            {end - start > words.length * LETTER + 8 ? (
              <text class="in" x={(start + end) / 2 - 1} y={top + bar / 2 + 4} text-anchor="middle">
                {words}
              </text>
            ) : null}
          </g>
        );
      })}
      {[...spans.map(({ from }) => from), 1].map((score) => {
        const at = x(score) + (score === 1 ? CAP / 2 : 0);
        if (at - lastTick < APART) return null;
        lastTick = at;
        return (
          <text x={at} y={text} text-anchor={score === 0 ? "start" : "middle"}>
            {String(Number(score.toPrecision(3)))}
          </text>
        );
      })}
    </svg>
  );
};

const Outcome = ({ band }: { band: Band }) => (
  <>
    <Badge look={`band-${band.outcome}`} of={bandWords(band)} />
    {band.label ? (
      <>
        {" "}
        <Text of={band.label} />
      </>
    ) : null}
  </>
);

const ALWAYS_WORDS = { escalate: "always escalates", refund: "always refunds", score: "the score decides" };
const alwaysWords = (always: Always): string => ALWAYS_WORDS[always ?? "score"];

/** The rules in words: each stretch of scores, and what decides besides. */
export const BandWords = ({ rules }: { rules: PolicyRules }) => {
  const spans = spansOf(rules);
  const scores = spans.map(scoresOf);
  const { alwaysRefund = [], alwaysEscalate = [], maxAmount } = rules;
  const hidden = hiddenBands(rules);
  return (
    <ul class="rules">
      {spans
        .map((span, at) => (
          <li>
            <span>Score {scores[at]}</span>
            <span>
              <Outcome band={span.band} />
            </span>
          </li>
        ))
        .toReversed()}
      {hidden.map((band) => (
        <li class="quiet">
          <span>Never</span>
          <span>
            <Outcome band={band} /> begins at {band.minScore} too, and an earlier band decides there
          </span>
        </li>
      ))}
      <Codes words="Always refund" codes={alwaysRefund} />
      <Codes words="Always escalate" codes={alwaysEscalate} />
      {maxAmount === undefined ? null : (
        <li>
          <span>Largest warrant</span>
          <span>
            <Amount of={BigInt(maxAmount)} asset="USDC" />
          </span>
        </li>
      )}
    </ul>
  );
};

const Codes = ({ words, codes }: { words: string; codes: readonly string[] }) =>
  codes.length === 0 ? null : (
    <li>
      <span>{words}</span>
      <span class="reasons">
        {codes.map((code) => (
          <Reason code={code} />
        ))}
      </span>
    </li>
  );

const Maximum = ({ of }: { of: string | null }) =>
  of === null ? <span>none</span> : <Amount of={BigInt(of)} asset="USDC" />;

const FromTo = ({ before, after }: { before: Markup; after: Markup }) => (
  <>
    {before} → {after}
  </>
);

/** What one version does differently from another. */
export const Changes = ({ of }: { of: PolicyChanges }) => {
  if (isUnchanged(of)) return <p class="quiet">Both decide everything alike.</p>;
  const rows = [
    ...of.spans
      .toReversed()
      .map((span) => [
        `Score ${scoresOf(span)}`,
        <FromTo before={<Outcome band={span.before} />} after={<Outcome band={span.after} />} />,
      ]),
    ...of.codes.map(({ code, before, after }) => [
      <Reason code={code} />,
      <FromTo before={alwaysWords(before)} after={alwaysWords(after)} />,
    ]),
    ...(of.maxAmount === null
      ? []
      : [
          [
            "Largest warrant",
            <FromTo
              before={<Maximum of={of.maxAmount.before} />}
              after={<Maximum of={of.maxAmount.after} />}
            />,
          ],
        ]),
  ];
  return <Table label="What changes" columns={["Where", "Before and after"]} rows={rows} />;
};
