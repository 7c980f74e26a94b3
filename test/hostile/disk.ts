import { statSync } from "node:fs";
import { join } from "node:path";
import { ledgerFileOf, prepareLedger, startBeside, startServer } from "../bench/holdfast.ts";
import { atMost, noted, type Row } from "../bench/table.ts";

const SOURCE_PORT = 18_096;
const PURCHASES = 60;
const MIB = 1024 * 1024;
/** 64 MiB of content, the same for the pages that are written anew, and what the log of the ledger may have. */
const GROWTH_MIB_MAX = 512;

/** How much a sandbox key without a balance can write: a minute's requests, each for 10 MiB that cost nothing. */
export async function measureDisk(folder: string): Promise<Row[]> {
  const data = join(folder, "data");
  const secret = prepareLedger(data);
  await using source = await startBeside(join(import.meta.dir, "large-source.ts"), SOURCE_PORT);
  const before = bytesOf(data);
  let peak = 0;
  let gone = 0;
  {
    await using server = await startServer(data, {
      settings: { HOLDFAST_X402_ALLOW_NETWORKS: "127.0.0.0/8" },
    });
    const pay = (key: number) =>
      fetch(`${server.url}/v1/x402/pay`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${secret}`,
          "Idempotency-Key": `pay ${key}`,
          "Content-Type": "application/json",
        },
        body: JSON.stringify({
          url: `${source.url}/text`,
          max_amount: "1",
          spec: { clauses: [{ kind: "http.status", equals: 200 }] },
        }),
      });
    for (let key = 0; key < PURCHASES; key++) {
      const response = await pay(key);
      if (response.status !== 200) throw new Error(`a purchase was answered ${response.status}`);
      await response.arrayBuffer();
      peak = Math.max(peak, bytesOf(data) - before);
    }
    for (let key = 0; key < PURCHASES; key++) {
      const response = await pay(key);
      await response.arrayBuffer();
      if (response.headers.get("service-body-gone") === "true") gone++;
    }
  }
  return [
    noted("bodies of 10 MiB that cost nothing", String(PURCHASES)),
    noted("of them still kept for replays", String(PURCHASES - gone)),
    atMost("the ledger has grown by, with its log", peak / MIB, { required: GROWTH_MIB_MAX }, " MiB"),
    atMost("and after the server's end by", (bytesOf(data) - before) / MIB, { required: 128 }, " MiB"),
  ];
}

/** The bytes of the ledger's file and of its write-ahead log. */
const bytesOf = (data: string): number =>
  ["", "-wal"].reduce(
    (sum, end) => sum + (statSync(`${ledgerFileOf(data)}${end}`, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
