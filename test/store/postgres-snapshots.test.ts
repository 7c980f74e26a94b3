import { expect, test } from "bun:test";
import type { Sessions, Statement } from "../../src/store/postgres/client.ts";
import { createReadSnapshots } from "../../src/store/postgres/read-snapshots.ts";
import { createReplay } from "../../src/store/postgres/replay.ts";
import type { SqlReader } from "../../src/store/sql/readers/sql-reader.ts";

/** What a snapshot of the engine on PostgreSQL remembers of what was read in it. */

type Row = { readonly at: number };
type Pages = { readonly pages: { after(at: number): Promise<readonly Row[]> } };

/** A server whose pages go on without end, and what it was asked. */
function createServer() {
  const asked: string[] = [];
  const given: WeakRef<object>[] = [];
  const answer = ({ text }: Statement) => {
    asked.push(text);
    if (!text.startsWith("SELECT")) return [];
    const row = { at: given.length + 1 };
    given.push(new WeakRef(row));
    return [row];
  };
  const session = {
    exchange: async (statements: readonly Statement[]) => statements.map(answer),
    release() {},
  };
  const sessions = { reserve: async () => session } as unknown as Sessions;
  const replay = createReplay();
  const page = replay.connection.raw.query<Row, [number]>("SELECT at FROM pages WHERE at > ?");
  const reader = { pages: { after: (at: number) => page.all(at) } } as unknown as SqlReader;
  return { snapshots: createReadSnapshots(sessions, replay, reader), asked, given };
}

test("a long piece of work that reads page after page keeps only the last of them", async () => {
  const { snapshots, given } = createServer();
  await snapshots.read(async (reader) => {
    const { pages } = reader as unknown as Pages;
    for (let at = 0; at < 1_000; at++) await pages.after(at);
    await new Promise(setImmediate);
    Bun.gc(true);
    expect(given.filter((row) => row.deref() !== undefined).length).toBeLessThan(200);
  });
  expect(given).toHaveLength(1_000);
});

test("what was read a moment ago is not asked again", async () => {
  const { snapshots, asked } = createServer();
  await snapshots.read(async (reader) => {
    const { pages } = reader as unknown as Pages;
    expect(await pages.after(0)).toEqual(await pages.after(0));
  });
  expect(asked.filter((text) => text.startsWith("SELECT"))).toHaveLength(1);
});
