import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type ChainTransfer,
  mergeTransfers,
  TRANSFER_TOPIC,
  type TransferInBlock,
  topicOf,
  transferKey,
  transfersIn,
} from "../../src/core/chain-transfer.ts";
import { parseEvmAddress } from "../../src/core/evm-address.ts";
import { AMOUNT_MAX } from "../../src/core/money.ts";
import {
  expectedBalance,
  goneBackTo,
  newWatch,
  reconciledWith,
  scannedTo,
  type TreasuryWatch,
} from "../../src/core/treasury-watch.ts";

/** Transfers of treasuries: what a node's logs are read as, and what scans of a chain that is reorganised find. */

const TOKEN = `0x${"70".repeat(20)}`;
const TREASURY = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
const OTHER = `0x${"ac".repeat(20)}`;
const hashOf = (digit: string): string => `0x${digit.padStart(64, "0")}`;
const question = { token: TOKEN, address: TREASURY, after: 4, until: 9 };

const log = (changed: object = {}) => ({
  address: TOKEN,
  topics: [TRANSFER_TOPIC, topicOf(OTHER), topicOf(TREASURY)],
  data: hashOf("5"),
  blockNumber: "0x5",
  blockHash: hashOf("b5"),
  transactionHash: hashOf("a1"),
  logIndex: "0x0",
  removed: false,
  ...changed,
});
const found: TransferInBlock = {
  ...{ hash: hashOf("a1"), counterparty: OTHER, amount: 5n, direction: "received", block: 5 },
  blockHash: hashOf("b5"),
};
const topics = (...given: string[]) => ({ topics: [TRANSFER_TOPIC, ...given] });

describe("a node's logs", () => {
  const READ: readonly [string, unknown, readonly Partial<TransferInBlock>[] | null][] = [
    ["none", [], []],
    ["a transfer that came in", [log()], [found]],
    [
      "a transfer that left",
      [log(topics(topicOf(TREASURY), topicOf(OTHER)))],
      [{ direction: "sent", counterparty: OTHER }],
    ],
    [
      "one in capitals",
      [log({ address: TOKEN.toUpperCase().replace("X", "x"), data: hashOf("A") })],
      [{ amount: 10n }],
    ],
    ["the same log twice", [log(), log()], [found]],
    [
      "two logs of a transaction, in the wrong order",
      [log({ logIndex: "0x2", data: hashOf("6") }), log()],
      [found, { amount: 6n }],
    ],
    ["nothing moved", [log({ data: hashOf("0") })], []],
    ["the treasury to itself", [log(topics(topicOf(TREASURY), topicOf(TREASURY)))], []],
    ["the last block", [log({ blockNumber: "0x9" })], [{ block: 9 }]],
    ["the largest number", [log({ data: `0x${"f".repeat(64)}` })], [{ amount: 2n ** 256n - 1n }]],
    ["no list", { 0: log() }, null],
    ["null", null, null],
    ["a log that is null", [null], null],
    ["another token", [log({ address: OTHER })], null],
    ["another event", [log({ topics: [hashOf("1"), topicOf(OTHER), topicOf(TREASURY)] })], null],
    ["a transfer of others", [log(topics(topicOf(OTHER), topicOf(OTHER)))], null],
    ["a topic that is no address", [log(topics(`0x${"f".repeat(64)}`, topicOf(TREASURY)))], null],
    ["too few topics", [log(topics(topicOf(OTHER)))], null],
    [
      "too many topics, as of a token of single pieces",
      [log({ ...topics(topicOf(OTHER), topicOf(TREASURY), hashOf("1")) })],
      null,
    ],
    ["the block before the first", [log({ blockNumber: "0x4" })], null],
    ["the block after the last", [log({ blockNumber: "0xa" })], null],
    ["a block of no number", [log({ blockNumber: "5" })], null],
    ["a removed log", [log({ removed: true })], null],
    ["an amount that is too short", [log({ data: "0x5" })], null],
    ["an amount that is too long", [log({ data: `${hashOf("5")}00` })], null],
    ["no transaction", [log({ transactionHash: undefined })], null],
    ["another log at the same place", [log(), log({ data: hashOf("6") })], null],
    ["another transaction at the same place", [log(), log({ transactionHash: hashOf("a2") })], null],
    ["two hashes of a block", [log(), log({ logIndex: "0x1", blockHash: hashOf("b6") })], null],
  ];
  for (const [name, logs, expected] of READ)
    test(name, () => {
      const read = transfersIn(logs, question);
      expect(read).toEqual(expected?.map((one) => ({ ...found, ...one })) ?? null);
    });
});

/** A chain of blocks, each with the transactions in it; and what the watch knows of it. */
type Tx = {
  readonly hash: string;
  readonly moves: readonly Pick<TransferInBlock, "direction" | "amount" | "counterparty">[];
};
type Block = { readonly hash: string; readonly txs: readonly Tx[] };

class Model {
  blocks: Block[] = [{ hash: hashOf("0"), txs: [] }];
  known = new Map<string, ChainTransfer>();
  hashes: string[] = [hashOf("0")];
  made = 0;
  watch: TreasuryWatch = newWatch(
    { id: "twa", mode: "sandbox", asset: "USDC", chainId: 1, token: TOKEN, address: TREASURY, createdAt: 0 },
    { number: 0, hash: hashOf("0") },
    1_000_000n,
  );

  mine(txs: readonly Tx[]): void {
    this.made += 1;
    this.blocks.push({ hash: hashOf(`b${this.made}`), txs });
  }

  /** Takes out blocks, and puts back some of what was in them, in another order. */
  reorganise(depth: number, keep: (index: number) => boolean): void {
    const taken = this.blocks.splice(Math.max(1, this.blocks.length - depth)).flatMap(({ txs }) => txs);
    this.mine([]);
    // The moves of a transaction may come in another order too.
    const back = taken
      .filter((_, index) => keep(index))
      .map(({ hash, moves }) => ({ hash, moves: moves.toReversed() }));
    this.mine(back.toReversed());
  }

  transfers(after: number, until: number): TransferInBlock[] {
    return this.blocks.flatMap(({ hash: blockHash, txs }, block) =>
      block > after && block <= until
        ? txs.flatMap(({ hash, moves }) => moves.map((move) => ({ ...move, hash, block, blockHash })))
        : [],
    );
  }

  sums(rows: Iterable<Pick<ChainTransfer, "status" | "amount" | "block">>, until: number) {
    const sums = { received: 0n, sent: 0n };
    for (const { status, amount, block } of rows)
      if (block !== null && block <= until) sums[status === "sent" ? "sent" : "received"] += amount;
    return sums;
  }

  /** Goes back as far as it has to, and looks at `span` blocks more. */
  scan(span: number): void {
    // As of a node that is behind: it is asked again.
    if (this.blocks.length - 1 < this.watch.last.number) return;
    let fork = this.watch.last.number;
    while (this.blocks[fork]!.hash !== this.hashes[fork]) fork -= 1;
    if (fork < this.watch.last.number)
      this.watch = goneBackTo(
        this.watch,
        { number: fork, hash: this.blocks[fork]!.hash },
        this.sums(this.known.values(), fork),
      );
    const after = this.watch.last.number;
    const until = Math.min(after + span, this.blocks.length - 1);
    if (until === after) return;
    const transfers = this.transfers(after, until);
    const hashes = new Set(transfers.map(({ hash }) => hash));
    const known = [...this.known.values()].filter(
      ({ hash, block }) => hashes.has(hash) || (block !== null && block > after && block <= until),
    );
    const changed = mergeTransfers(known, transfers, { after, until }, (one, ordinal) => {
      const { direction, ...rest } = one;
      const status = direction === "sent" ? "sent" : "found";
      return {
        id: `trf_${this.known.size}_${ordinal}`,
        watchId: "twa",
        ordinal,
        status,
        ...rest,
        depositId: null,
        createdAt: 0,
      };
    });
    const scanned = scannedTo(
      this.watch,
      { number: until, hash: this.blocks[until]!.hash },
      transfers,
      changed,
    );
    if (scanned === "too_large") throw new Error("too large");
    this.watch = scanned;
    for (const { after: row } of changed) this.known.set(transferKey(row), row);
    for (let at = after + 1; at <= until; at++) this.hashes[at] = this.blocks[at]!.hash;
  }

  /** Until the chain is longer than it ever was, and all of it was looked at. */
  scanAll(span: number): void {
    while (this.blocks.length < this.hashes.length) this.mine([]);
    do this.scan(span);
    while (
      this.watch.last.number < this.blocks.length - 1 ||
      this.blocks.at(-1)!.hash !== this.watch.last.hash
    );
  }
}

const contentOf = ({ hash, amount, counterparty, block }: ChainTransfer | TransferInBlock): string =>
  `${hash} ${amount} ${counterparty} ${block}`;

const moves = fc.array(
  fc.record({
    direction: fc.constantFrom("received" as const, "received" as const, "sent" as const),
    amount: fc.bigInt({ min: 1n, max: 3n }),
    counterparty: fc.constantFrom(OTHER, `0x${"55".repeat(20)}`),
  }),
  { maxLength: 3 },
);
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("mine" as const), txs: fc.array(moves, { maxLength: 3 }) }),
    fc.record({ do: fc.constant("scan" as const), span: fc.integer({ min: 1, max: 5 }) }),
    fc.record({
      do: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 8 }),
      keep: fc.integer({ min: 0, max: 255 }),
    }),
  ),
  { maxLength: 40 },
);

test("scans of a chain that is reorganised end with what is on the chain, each transfer once and under one name", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 9 }), (list, span) => {
      const model = new Model();
      let transactions = 0;
      /** The names that were given to what a transaction moved. */
      const names = new Map<string, Set<string>>();
      for (const step of list) {
        if (step.do === "mine")
          model.mine(step.txs.map((given) => ({ hash: hashOf(`a${++transactions}`), moves: given })));
        else if (step.do === "scan") model.scan(step.span);
        else model.reorganise(step.depth, (index) => (step.keep & (1 << (index % 8))) !== 0);
        for (const row of model.known.values()) {
          const content = `${row.hash} ${row.amount} ${row.counterparty} ${row.status === "sent"}`;
          names.set(content, (names.get(content) ?? new Set()).add(row.id));
        }
        const { received, sent } = model.watch;
        expect({ received, sent }).toEqual(model.sums(model.known.values(), model.watch.last.number));
      }
      model.scanAll(span);
      const onChain = model.transfers(0, model.blocks.length - 1);
      const present = [...model.known.values()].filter(({ block }) => block !== null);
      expect(present.map(contentOf).sort()).toEqual(onChain.map(contentOf).sort());
      const { opening } = model.watch;
      const expected = onChain.reduce(
        (sum, { direction, amount }) => sum + (direction === "sent" ? -amount : amount),
        opening,
      );
      expect(expectedBalance(model.watch)).toBe(expected);
      expect(reconciledWith(model.watch, expected)?.reconciled).toEqual(model.watch.last);
      expect(reconciledWith(model.watch, expected + 1n)).toBeNull();
      // What comes back is the same transfer: no more names than there ever were in one block.
      for (const [content, ids] of names) {
        const [hash] = content.split(" ");
        const ofTransaction = list.flatMap((step) => (step.do === "mine" ? step.txs : []))[
          Number.parseInt(hash!.slice(-8).replace(/^0*a/, ""), 10) - 1
        ];
        const times = ofTransaction?.filter(
          ({ direction, amount, counterparty }) =>
            `${hash} ${amount} ${counterparty} ${direction === "sent"}` === content,
        ).length;
        if (times !== undefined) expect(ids.size).toBeLessThanOrEqual(times);
      }
    }),
    { numRuns: 400 },
  );
});

test("what another transfer of the same transaction moves is not taken for it", () => {
  const row: ChainTransfer = {
    ...{
      id: "trf",
      watchId: "twa",
      hash: found.hash,
      ordinal: 0,
      status: "credited",
      counterparty: OTHER,
      amount: 5n,
    },
    ...{ block: 5, blockHash: found.blockHash, depositId: "dep", createdAt: 0 },
  };
  const made = (one: TransferInBlock, ordinal: number): ChainTransfer => ({
    ...{ ...row, id: "new", amount: one.amount, ordinal, status: "found", depositId: null },
  });
  const changed = mergeTransfers([row], [{ ...found, amount: 6n }], { after: 4, until: 9 }, made);
  expect(changed.map(({ after }) => [after.id, after.ordinal, after.block])).toEqual([
    ["new", 1, 5],
    ["trf", 0, null],
  ]);
});

test("a transfer that is said to be in a later block than before counts once", () => {
  const row: ChainTransfer = {
    ...{
      id: "trf",
      watchId: "twa",
      hash: found.hash,
      ordinal: 0,
      status: "found",
      counterparty: OTHER,
      amount: 5n,
    },
    ...{ block: 3, blockHash: hashOf("b3"), depositId: null, createdAt: 0 },
  };
  const other: ChainTransfer = { ...row, id: "other", ordinal: 1, amount: 6n };
  const changed = mergeTransfers([row, other], [found], { after: 4, until: 9 }, () => row);
  // What the blocks before say of the other one stays so: they were not looked at.
  expect(changed).toEqual([{ before: row, after: { ...row, block: 5, blockHash: hashOf("b5") } }]);
  const watch = { ...new Model().watch, last: { number: 4, hash: hashOf("b4") }, received: 11n };
  const scanned = scannedTo(watch, { number: 9, hash: hashOf("b9") }, [found], changed);
  expect(scanned).toMatchObject({ received: 11n, last: { number: 9 } });
});

test("sums beyond what the ledger can hold are refused", () => {
  const { watch } = new Model();
  const block = { number: 1, hash: hashOf("1") };
  const huge = { ...found, amount: AMOUNT_MAX };
  expect(scannedTo(watch, block, [huge], [])).toBe("too_large");
  expect(
    scannedTo(
      watch,
      block,
      [
        { ...huge, direction: "sent" },
        { ...found, direction: "sent" },
      ],
      [],
    ),
  ).toBe("too_large");
  expect(scannedTo(watch, block, [{ ...huge, amount: AMOUNT_MAX - 1_000_000n }], [])).toMatchObject({
    last: block,
  });
});

test("an address is read in one case or with its checksum", () => {
  const lower = TREASURY.toLowerCase();
  const capitals = `0x${lower.slice(2).toUpperCase()}`;
  for (const text of [TREASURY, lower, capitals]) expect(parseEvmAddress(text)).toBe(lower);
  for (const text of [
    TREASURY.replace("A6", "a6"),
    lower.slice(2),
    `${lower}0`,
    lower.slice(0, -1),
    "",
    "0x",
  ])
    expect(parseEvmAddress(text)).toBeNull();
});
