import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { prepareWrites } from "../../src/store/sql/prepared-write.ts";

const things = sqliteTable("things", { position: integer("position").primaryKey(), name: text("name") });

test("an update of a row that is not there is a fault, and an insert gives its position", () => {
  const raw = new Database(":memory:");
  raw.run("CREATE TABLE things (position INTEGER PRIMARY KEY, name TEXT)");
  const tables = drizzle(raw);
  const { placeholder } = sql;
  const write = prepareWrites(raw, {
    insert: () => tables.insert(things).values({ position: sql`NULL`, name: placeholder("name") }),
    rename: () =>
      tables
        .update(things)
        .set({ name: sql`${placeholder("name")}` })
        .where(eq(things.position, placeholder("position"))),
  });
  expect([write.insert({ name: "a" }), write.insert({ name: "b" })]).toEqual([1, 2]);
  write.rename({ position: 2, name: "c" });
  expect(raw.query("SELECT name FROM things").values()).toEqual([["a"], ["c"]]);
  expect(() => write.rename({ position: 3, name: "d" })).toThrow(
    /^0 rows were changed, not one: update "things"/,
  );
  expect(() => write.insert({})).toThrow("no value for name");
});
