import { test } from "bun:test";
import { Database } from "bun:sqlite";
import { buildFullLedger } from "../test/support/full-ledger.ts";
test("c", async () => {
  const f = await buildFullLedger();
  const d = new Database(f + "/holdfast.db", { safeIntegers: true });
  for (const { name } of d.query<{name: string}, []>("select name from sqlite_schema where type='table' order by 1").all()) console.log(name, d.query(`select count(*) c from "${name}"`).get());
  console.log(f);
}, 60000);
