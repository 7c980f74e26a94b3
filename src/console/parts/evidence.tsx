/** @jsxImportSource hono/jsx */
import type { Check } from "../../core/check.ts";
import type { Clause } from "../../core/clauses/registry.ts";
import { printableLines } from "../../core/hidden-characters.ts";
import { Facts } from "./blocks.tsx";
import { Badge, Id, Passed, percent, Reason, Text, Time } from "./figures.tsx";

/** What was promised, and what a check saw. */

const SHOWN_MAX = 2_000;

/** JSON that others wrote, cut where it is long, unless the whole is asked for. */
export const Seen = ({ of, whole = false }: { of: unknown; whole?: boolean }) => {
  const text = printableLines(typeof of === "string" ? of : JSON.stringify(of, null, 1));
  return (
    <pre class="seen" tabindex={0}>
      {text.length > SHOWN_MAX && !whole ? `${text.slice(0, SHOWN_MAX)}…` : text}
    </pre>
  );
};

/** A clause without its kind: what it asks for. */
export const Asked = ({ of: { kind: _, ...rest } }: { of: Clause }) => (
  <span class="quiet">
    {printableLines(
      Object.entries(rest)
        .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(" · "),
    )}
  </span>
);

/** The clauses of a warrant, each with its result in the newest check. */
export const Clauses = ({ clauses, check }: { clauses: readonly Clause[]; check: Check | undefined }) => (
  <ul class="clauses">
    {clauses.map((clause, index) => {
      const result = check?.details[index];
      return (
        <li>
          {result === undefined ? <Badge of="not checked" /> : <Passed of={result.passed} />}
          <div>
            <code>{clause.kind}</code> <Asked of={clause} />
            {result?.reason_code ? (
              <div>
                <Reason code={result.reason_code} />
              </div>
            ) : null}
            {result === undefined || result.observed === null ? null : <Seen of={result.observed} />}
          </div>
        </li>
      );
    })}
  </ul>
);

export const CheckFacts = ({ check }: { check: Check }) => (
  <Facts
    of={[
      ["Source", <Text of={check.sourceUrl} />],
      [
        "Answer",
        check.httpStatus === null
          ? "none"
          : `${check.httpStatus}, ${check.bytes} bytes in ${check.durationMs} ms`,
      ],
      ["Score", percent(check.score)],
      ["Decided", `${check.outcome.replaceAll("_", " ")}${check.bandLabel ? ` (${check.bandLabel})` : ""}`],
      ["Checked", <Time at={check.evaluatedAt} />],
      ["Signed by", check.signedBy === null ? "no registered key" : <Id of={check.signedBy} />],
      ["Evidence", <Id of={check.evidenceHash} />],
    ]}
  />
);
