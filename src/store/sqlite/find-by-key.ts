import { type Column, eq, type SQL, sql } from "drizzle-orm";
import { lazily } from "./lazily.ts";

/** The condition of a look-up by key. */
export const keyed = (column: Column): SQL => eq(column, sql.placeholder("key"));

/** A prepared statement that finds a row by its key. */
type Finder<Row> = { get(values: { key: string }): Row | undefined };

/** A look-up of one row by its key, prepared at its first use; null where there is no such row. */
export const finding = <Row>(prepare: () => Finder<Row>): ((key: string) => Row | null) =>
  lazily(() => {
    const statement = prepare();
    return (key) => statement.get({ key }) ?? null;
  });
