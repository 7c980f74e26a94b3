import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { ledgerFileOf, prepareLedger, startBeside, startServer } from "./holdfast.ts";
import { DAY_MS } from "./load.ts";
import { each, post } from "./open-many.ts";
import { opening } from "./opening.ts";
import { inWords, type Scale, say } from "./scale.ts";
import { atMost, type Row } from "./table.ts";

const WARRANTS = 4_000;
/**
 * How many warrants are opened before the first measurement, so that tables and indexes have their first
 * pages.
 */
const WARRANTS_BEFORE = 1_000;
const SELLER_PORT = 18_083;

/** How much the file of the ledger grows for an open, and for a warrant that is opened, verified and settled. */
export async function measureDisk({ folder }: Scale): Promise<Row[]> {
  const data = join(folder, "disk");
  const secret = prepareLedger(data);
  await using seller = await startBeside(join(import.meta.dir, "seller.ts"), SELLER_PORT);
  const serving = async (
    work: (open: () => Promise<string>, verify: (id: string) => Promise<void>) => Promise<void>,
  ) => {
    {
      await using server = await startServer(data);
      const send = (path: string, body: object) => post({ url: server.url, secret }, path, body);
      await work(
        async () => (await send("/v1/warrants", opening(Date.now() + 365 * DAY_MS))).id,
        async (id) => {
          const { state } = await send(`/v1/warrants/${id}/verify`, {
            source_url: `${seller.url}/report.json`,
          });
          if (state !== "released") throw new Error(`the verified warrant ${id} is ${state}`);
        },
      );
    }
    return bytesOf(data);
  };
  say(`disk: ${inWords(WARRANTS)} opens, then ${inWords(WARRANTS)} that are settled`);
  const before = await serving((open) => each(WARRANTS_BEFORE, open));
  const opened = await serving((open) => each(WARRANTS, open));
  const settled = await serving((open, verify) => each(WARRANTS, async () => verify(await open())));
  const count = `over ${inWords(WARRANTS)}`;
  return [
    atMost("on disk, an open", (opened - before) / WARRANTS, { required: 1_300 }, " bytes", count),
    atMost(
      "on disk, a warrant opened, verified and settled",
      (settled - opened) / WARRANTS,
      { required: 3_000 },
      " bytes",
      count,
    ),
  ];
}

/** The size of the ledger's file, after a server has ended and left no log. */
function bytesOf(data: string): number {
  const file = ledgerFileOf(data);
  if (existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0)
    throw new Error(`${file} still has a log`);
  return statSync(file).size;
}
