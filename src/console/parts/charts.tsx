/** @jsxImportSource hono/jsx */
import { scaleBand, scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { displayAmount } from "../../core/money.ts";
import { DAY_MS, isoTime } from "../../core/time.ts";
import type { DayOfMoney } from "../../services/console/history.ts";
import { Reason } from "./figures.tsx";

/** Pictures, drawn on the server as SVG. Each says in words what it shows, for whoever does not see it. */

const SIZE = { width: 720, height: 220, left: 8, right: 8, top: 12, bottom: 22 };

const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "short" });

const amountOf = (value: number, asset: string): string => displayAmount(BigInt(Math.round(value)), asset);

const isoDay = (day: number): string => isoTime(day * DAY_MS).slice(0, 10);

/** Whether anything happened. */
export const hasMoney = (days: readonly DayOfMoney[]): boolean =>
  days.some(({ held, paid, returned }) => held + paid + returned > 0);

/** What was held on each day as a line, and what was paid and returned as bars. */
export const MoneyChart = ({ asset, days }: { asset: string; days: readonly DayOfMoney[] }) => {
  const { width, height, left, right, top, bottom } = SIZE;
  const highest = Math.max(1, ...days.map(({ held, paid, returned }) => Math.max(held, paid + returned)));
  const x = scaleBand<number>()
    .domain(days.map(({ day }) => day))
    .range([left, width - right])
    .paddingInner(0.35);
  const y = scaleLinear()
    .domain([0, highest])
    .range([height - bottom, top]);
  const middle = (day: number) => (x(day) ?? 0) + x.bandwidth() / 2;
  const held = line<DayOfMoney>()
    .x(({ day }) => middle(day))
    .y((one) => y(one.held));
  const title = `${asset}: held, paid and returned on each of the last ${days.length} days`;
  return (
    <figure class="figure">
      <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={title}>
        <title>{title}</title>
        <line class="axis" x1={left} x2={width - right} y1={y(0)} y2={y(0)} />
        <line class="axis" x1={left} x2={width - right} y1={y(highest)} y2={y(highest)} />
        {days.map(({ day, paid, returned, held: opened }) => (
          <g>
            <title>
              {`${isoDay(day)}: held ${amountOf(opened, asset)}, paid ${amountOf(paid, asset)}, returned ${amountOf(returned, asset)}`}
            </title>
            <rect class="area" x={x(day)} width={x.bandwidth()} y={top} height={y(0) - top} />
            <rect
              class="paid"
              x={x(day)}
              width={x.bandwidth()}
              y={y(paid)}
              height={y(0) - y(paid)}
              rx="1.5"
            />
            <rect
              class="returned"
              x={x(day)}
              width={x.bandwidth()}
              y={y(paid + returned)}
              height={y(paid) - y(paid + returned)}
              rx="1.5"
            />
          </g>
        ))}
        <path class="opened" d={held([...days]) ?? ""} />
        <text x={left} y={top - 3}>
          {amountOf(highest, asset)}
        </text>
        {days
          .filter((_, at) => at % 7 === 1)
          .map(({ day }) => (
            <text x={middle(day)} y={height - 6} text-anchor="middle">
              {SHORT_DAY.format(day * DAY_MS)}
            </text>
          ))}
      </svg>
      <figcaption class="legend">
        <Key of="opened" words="Held" />
        <Key of="paid" words="Paid" />
        <Key of="returned" words="Returned" />
      </figcaption>
    </figure>
  );
};

const Key = ({ of, words }: { of: string; words: string }) => (
  <span>
    <svg class="chart key" viewBox="0 0 10 10" aria-hidden="true">
      {of === "opened" ? (
        <path class="opened" d="M0 5H10" />
      ) : (
        <rect class={of} width="10" height="10" rx="2" />
      )}
    </svg>
    {words}
  </span>
);

const REASONS_DRAWN = 8;

/** How many checks failed for each reason, as bars beside the numbers. */
export const ReasonBars = ({
  failures,
}: {
  failures: readonly { readonly code: string; readonly count: number }[];
}) => {
  const width = scaleLinear()
    .domain([0, failures[0]?.count ?? 1])
    .range([0, 200]);
  return (
    <ul class="bars">
      {failures.slice(0, REASONS_DRAWN).map(({ code, count }) => (
        <li>
          <Reason code={code} />
          <svg viewBox="0 0 200 10" preserveAspectRatio="none" aria-hidden="true">
            <rect width={Math.max(1, width(count))} height="10" rx="2" />
          </svg>
          <span>{count}</span>
        </li>
      ))}
    </ul>
  );
};
