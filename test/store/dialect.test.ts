import { expect, test } from "bun:test";
import { toPostgres } from "../../src/store/postgres/dialect.ts";
import type { SqlValue } from "../../src/store/sql/database.ts";

/** What becomes of statements on PostgreSQL. That they say the same there is seen on a server (test/postgres/statements.ts). */

const bound = (text: string, ...values: SqlValue[]) => toPostgres(text).bind(values);
const textOf = (text: string, ...values: SqlValue[]): string => bound(text, ...values).text;

test("parameters get numbers, types and whole numbers as bigints", () => {
  expect(bound("SELECT ? + ?, ?, ?", 1, 2n, "three", new Uint8Array([4]))).toEqual({
    text: "SELECT $1::int8 + $2::int8, $3::text, $4::bytea",
    params: [1n, 2n, "three", new Uint8Array([4])],
  });
  expect(bound("SELECT ?, ?", true, false).params).toEqual([1n, 0n]);
  for (const odd of [0.5, Number.POSITIVE_INFINITY]) expect(() => bound("SELECT ?", odd)).toThrow();
  expect(() => bound("SELECT ?", undefined as never)).toThrow("undefined");
});

test("a numbered parameter may stand in several places, and one without a number follows the largest", () => {
  expect(bound("?2 = ?1 AND ?2 = ?", "a", "b", "c")).toEqual({
    text: "$2::text = $1::text AND $2::text = $3::text",
    params: ["a", "b", "c"],
  });
});

test("nothing changes in literals, quoted names and comments", () => {
  const kept = `SELECT 'it''s ?' AS "a ?", 'CROSS JOIN a ON' -- ?\n/* ? INDEXED BY x */`;
  expect(bound(kept)).toEqual({ text: kept, params: [] });
  expect(textOf(`${kept}, ?`, 1)).toBe(`${kept}, $1::int8`);
});

test("a null is written into the text, and a comparison with it needs no parameter", () => {
  const statement = "a IS NOT DISTINCT FROM ? AND b IS DISTINCT FROM ? AND c = ? AND d IS DISTINCT FROM e";
  expect(bound(statement, null, null, 3)).toEqual({
    text: "a IS NULL AND b IS NOT NULL AND c = $1::int8 AND d IS DISTINCT FROM e",
    params: [3n],
  });
  expect(textOf(statement, 1, 2, null)).toBe(
    "a = $1::int8 AND b IS DISTINCT FROM $2::int8 AND c = NULL AND d IS DISTINCT FROM e",
  );
});

test("what is SQLite's alone goes, or has another name", () => {
  expect(textOf("SELECT 1 FROM a INDEXED BY a_by_b WHERE b")).toBe("SELECT 1 FROM a WHERE b");
  expect(textOf("a CROSS JOIN b ON b.a = a.b CROSS JOIN c AS d ON 1 CROSS JOIN e")).toBe(
    "a JOIN b ON b.a = a.b JOIN c AS d ON 1 CROSS JOIN e",
  );
  expect(textOf("insert or rollback into a values (?)", 1)).toBe("insert into a values ($1::int8)");
  expect(textOf("a IN (SELECT value FROM json_each(?1))", "[]")).toBe(
    "a = ANY(ARRAY(SELECT value FROM json_array_elements_text(CAST($1::text AS json)) AS value))",
  );
  expect(textOf("a IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", "[]")).toBe(
    "a = ANY(ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($1::text AS json)) AS value))",
  );
  expect(textOf("SELECT json_array_length(c.details) AS n")).toBe(
    "SELECT CAST(json_array_length(CAST(c.details AS json)) AS int8) AS n",
  );
});

test("where the first rows of several SELECTs are wanted, each gives no more than these", () => {
  const merged = "SELECT a FROM b WHERE c IN (1, 2) UNION ALL SELECT a FROM d ORDER BY a DESC LIMIT ?1";
  const each =
    "(SELECT a FROM b WHERE c IN (1, 2) ORDER BY a DESC LIMIT $1::int8) UNION ALL (SELECT a FROM d ORDER BY a DESC LIMIT $1::int8)";
  expect(textOf(merged, 5)).toBe(`${each} ORDER BY a DESC LIMIT $1::int8`);
  expect(textOf(`SELECT max(a) FROM (${merged}) AS e WHERE f IN (3)`, 5)).toBe(
    `SELECT max(a) FROM (${each} ORDER BY a DESC LIMIT $1::int8) AS e WHERE f IN (3)`,
  );
  expect(textOf("SELECT a FROM b UNION ALL SELECT a FROM d ORDER BY a LIMIT ?1 OFFSET ?2", 5, 6)).toBe(
    "(SELECT a FROM b ORDER BY a LIMIT $1::int8 + $2::int8) UNION ALL (SELECT a FROM d ORDER BY a LIMIT $1::int8 + $2::int8) ORDER BY a LIMIT $1::int8 OFFSET $2::int8",
  );
  const all = "SELECT a FROM b UNION ALL SELECT a FROM d";
  expect(textOf(all)).toBe(all);
});

test("questions are grouped where their values have the same types", () => {
  const one = toPostgres("SELECT id FROM a WHERE b = ?1 AND c IS NOT DISTINCT FROM ?2");
  expect(one.signatureOf(["x", 1])).toBe(one.signatureOf(["y", 2n]));
  expect(one.signatureOf(["x", null])).not.toBe(one.signatureOf(["y", 2n]));
  expect(toPostgres("SELECT 1").signatureOf([])).toBeNull();
  expect(toPostgres("DELETE FROM a WHERE b = ?").signatureOf([1])).toBeNull();
  expect(toPostgres("SELECT 1 WHERE ? IS NULL").signatureOf([null])).toBeNull();
  expect(
    one.group(
      [
        ["x", null],
        ["y", null],
      ],
      "first",
    ),
  ).toEqual({
    text: "SELECT q.ord, r.* FROM unnest($1::text[]) WITH ORDINALITY AS q(p1, ord) CROSS JOIN LATERAL (SELECT * FROM (SELECT id FROM a WHERE b = q.p1 AND c IS NULL) AS s LIMIT 1) AS r",
    columns: [{ type: "text", values: ["x", "y"] }],
  });
});

test("the rows of each question keep the order that the statement says", () => {
  const ordered = toPostgres("SELECT id FROM a WHERE b = ? ORDER BY id").group([[1], [2]], "all");
  expect(ordered.text).toEndWith(" ORDER BY q.ord, r.number");
  const any = toPostgres("SELECT id FROM a WHERE b = ?").group([[1], [2]], "all");
  expect(any.text).not.toContain("ORDER BY");
});
