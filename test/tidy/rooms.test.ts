import { expect, test } from "bun:test";
import { engineProblems, roomProblems } from "./rooms.ts";

const problemOf = (path: string, line: string): string | undefined =>
  roomProblems({ path, text: line })[0]?.split(": ")[1];

test("a file in no room is named", () => {
  expect(problemOf("src/utilities/a.ts", "")).toContain("this is in no room");
  expect(problemOf("src/http/a.ts", "")).toBeUndefined();
});

const REFUSED: readonly (readonly [path: string, line: string, problem: string])[] = [
  [
    "src/core/a.ts",
    'import type { B } from "../services/b.ts";',
    "core may not import services, only itself",
  ],
  ["src/core/deep/a.ts", 'import { b } from "../../http/b.ts";', "core may not import http, only itself"],
  ["src/http/a.ts", 'import { b } from "../store/sqlite/b.ts";', "http may not import sqlite"],
  ["src/http/a.ts", 'import { b } from "../cli/b.ts";', "http may not import cli"],
  [
    "src/services/a.ts",
    'import { b } from "../platform/b.ts";',
    "services may import only types of platform",
  ],
  [
    "src/services/a.ts",
    'import { b } from "../../test/b.ts";',
    "services may not import what is outside src",
  ],
  ["src/store/store.ts", 'import { b } from "./sqlite/b.ts";', "seam may not import sqlite"],
  [
    "src/services/a.ts",
    'import { Database } from "bun:sqlite";',
    "only sql and sqlite and postgres may import bun:sqlite",
  ],
  [
    "src/jobs/a.ts",
    'import { b } from "drizzle-orm/sqlite-core";',
    "only sql and sqlite and postgres may import drizzle-orm",
  ],
  ["src/cli/a.ts", 'import { b } from "@x402/core/client";', "only platform may import @x402/core"],
  ["src/core/a.ts", 'import { b } from "jose";', "core is pure"],
  ["src/core/a.ts", 'import { readFileSync } from "node:fs";', "core is pure"],
  ["src/core/a.ts", 'import { createHash, randomBytes } from "node:crypto";', "core is pure"],
];
test.each(REFUSED)("in %s, %s is refused", (path, line, problem) => {
  expect(problemOf(path, line)).toStartWith(problem);
});

const ALLOWED: readonly (readonly [path: string, line: string])[] = [
  ["src/core/a.ts", 'import { b } from "./b.ts";'],
  ["src/core/a.ts", 'import { createHash, createHmac } from "node:crypto";'],
  ["src/core/a.ts", 'import { ulid } from "ulid";'],
  ["src/services/a.ts", 'import type { B } from "../platform/b.ts";'],
  ["src/services/a.ts", 'import { b } from "../store/store.ts";'],
  ["src/store/sqlite/a.ts", 'import { b } from "drizzle-orm";'],
  ["src/app/a.ts", 'import { b } from "../store/sqlite/b.ts";'],
  ["src/http/a.ts", 'import { b } from "jose";'],
];
test.each(ALLOWED)("in %s, %s is allowed", (path, line) => {
  expect(problemOf(path, line)).toBeUndefined();
});

const WITH_ENGINE: readonly (readonly [path: string, line: string])[] = [
  ["src/services/log/audit.ts", 'import { auditQuickly } from "../../store/sqlite/audit-threads.ts";'],
  ["src/core/a.ts", 'import type { PostgresAddress } from "../store/postgres/address.ts";'],
  ["src/http/a.ts", 'const { openPostgresStore } = await import("../store/postgres/store.ts");'],
  ["src/jobs/a.ts", 'import { createLoad } from "../store/sql/load.ts";'],
  ["src/cli/a.ts", 'import { Database } from "bun:sqlite";'],
  ["src/console/a.tsx", 'import { SQL } from "bun";'],
  ["src/http/a.ts", 'import { sql } from "drizzle-orm";'],
];
test.each(WITH_ENGINE)("in %s, %s names an engine", (path, line) => {
  expect(engineProblems({ path, text: line })).toHaveLength(1);
});

test("the composition root may name one, and everybody the seam", () => {
  const text = 'import { a } from "../store/sqlite/a.ts";';
  expect(engineProblems({ path: "src/app/a.ts", text })).toEqual([]);
  expect(engineProblems({ path: "src/jobs/a.ts", text: 'import { b } from "../store/store.ts";' })).toEqual(
    [],
  );
  expect(engineProblems({ path: "src/http/a.ts", text: 'import { serve } from "bun";' })).toEqual([]);
});
