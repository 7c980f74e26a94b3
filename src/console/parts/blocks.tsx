/** @jsxImportSource hono/jsx */
import type { PropsWithChildren } from "hono/jsx";
import type { Markup } from "./markup.ts";

/** The blocks that pages are made of. */

/** The head of a page: its title, what it is about, and what can be done. */
export const Head = ({ title, about, actions }: { title: Markup; about?: Markup; actions?: Markup }) => (
  <header class="head">
    <div>
      <h1>{title}</h1>
      {about ? <p class="quiet">{about}</p> : null}
    </div>
    {actions ? <div class="actions">{actions}</div> : null}
  </header>
);

export const Card = ({ title, aside, children }: PropsWithChildren<{ title?: Markup; aside?: Markup }>) => (
  <section class="card">
    {title ? (
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
    ) : null}
    {children}
  </section>
);

/** What happened, or what went wrong. A problem is read out at once. */
export const Notice = ({ kind, children }: PropsWithChildren<{ kind: "done" | "problem" | "note" }>) => (
  <div class={`notice ${kind}`} role={kind === "problem" ? "alert" : "status"}>
    {children}
  </div>
);

/** The way back from what was just done, beside what says so. It leads to the confirmation of that, which says what it does. */
export const UndoLink = ({ href }: { href: string | null }) =>
  href === null ? null : (
    <a href={href} data-dialog>
      Undo
    </a>
  );

/** Says that there is nothing, and what to do next. */
export const Empty = ({ title, children }: PropsWithChildren<{ title: string }>) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    <div class="quiet">{children}</div>
  </div>
);

/**
 * A table whose rows become cards on a phone: each cell carries the name of its column.
 *
 * @param wide the columns that a phone has no place for
 * @param numbers the columns that are compared digit by digit
 */
export const Table = ({
  label,
  columns,
  rows,
  wide = [],
  numbers = [],
}: {
  label: string;
  columns: readonly string[];
  wide?: readonly string[];
  numbers?: readonly string[];
  rows: readonly (readonly Markup[])[];
}) => {
  const classOf = (column = "") =>
    [wide.includes(column) ? "wide-only" : "", numbers.includes(column) ? "number" : ""]
      .filter(Boolean)
      .join(" ") || undefined;
  return (
    <table class="table" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col" class={classOf(column)}>
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells) => (
          <tr>
            {cells.map((cell, index) => (
              <td data-label={columns[index]} class={classOf(columns[index])}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
};

/** Names and values, one under the other. */
export const Facts = ({ of }: { of: readonly (readonly [name: string, value: Markup])[] }) => (
  <dl class="facts">
    {of.map(([name, value]) => (
      <div>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

/** Pages that belong together, side by side. */
export const Tabs = ({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: readonly { readonly path: string; readonly words: string }[];
  current: string;
}) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map(({ path, words }) => (
      <a href={path} aria-current={path === current ? "page" : undefined}>
        {words}
      </a>
    ))}
  </nav>
);

/** Leads to the pages before and after; null where there is none. */
export const Pager = ({
  newer,
  older,
  newerWords = "← Back",
}: {
  newer: string | null;
  older: string | null;
  newerWords?: string;
}) =>
  newer === null && older === null ? null : (
    <nav class="pager" aria-label="Pages">
      {newer === null ? (
        <span />
      ) : (
        <a class="button" href={newer} rel="prev">
          {newerWords}
        </a>
      )}
      {older === null ? (
        <span />
      ) : (
        <a class="button" href={older} rel="next">
          More →
        </a>
      )}
    </nav>
  );
