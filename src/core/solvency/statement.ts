import { canonicalJson } from "../canonical.ts";
import { parseJsonText } from "../json-text.ts";
import { logNameOf } from "../log.ts";
import { MODES, type Mode } from "../roles.ts";
import { count, hash, kind, list, matching, ordinal, orNull, record, text, time } from "../shapes.ts";
import { isoTime } from "../time.ts";
import { OWED_PARTS, type Owed, sumOwed } from "./owed.ts";
import { isSum } from "./sum-tree.ts";

/** What the ledger owed at a posting, and what the chains held, as it is signed (docs/solvency, "The statement"). */
export type Statement = {
  /** From 1 on. */
  readonly number: number;
  readonly instanceId: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The position of the last posting that is counted. */
  readonly posting: number;
  /** How many further assets something was owed of, which are not in it. */
  readonly leftOut: number;
  /** In the order of modes and assets. */
  readonly assets: readonly StatedAsset[];
};

export type StatedAsset = {
  readonly mode: Mode;
  readonly asset: string;
  readonly owed: Owed;
  /** To how many creditors something is owed. */
  readonly leaves: number;
  /** The root's hash: 64 hex digits. */
  readonly root: string;
  /** Null where no treasury holds the asset on a chain. */
  readonly holding: StatedHolding | null;
};

export type StatedHolding = {
  /** CAIP-2. */
  readonly chain: string;
  readonly token: string;
  readonly address: string;
  /** Null where the chain did not say. */
  readonly seen: { readonly balance: bigint; readonly block: number; readonly blockHash: string } | null;
};

/** A statement as it is kept. */
export type KeptStatement = {
  readonly number: number;
  /** The signed note. */
  readonly note: string;
  /** The secret from which the salts follow: 64 hex digits. */
  readonly seed: string;
  /** The SHA-256 of the note, which is the entry of the log. */
  readonly entryHash: string;
};

/** A note has a limit of its length, so a statement has one of assets. */
export const STATED_ASSETS_MAX = 256;

/** The text that is signed: a line that says what it is and of which instance, and a line of RFC 8785 JSON. */
export const statementText = (statement: Statement): string =>
  `${headOf(statement.instanceId)}\n${canonicalJson(wireOf(statement))}\n`;

const headOf = (instanceId: string): string => `${logNameOf(instanceId)}/solvency`;

/** The statement that a text is; null for every other text. */
export function parseStatement(signed: string): Statement | null {
  const [, json = ""] = signed.split("\n");
  const parsed = parseJsonText(json);
  if ("problem" in parsed || [...statement(parsed.value, "")].length > 0) return null;
  const found = statementOf(parsed.value as StatementWire);
  const { assets } = found;
  const isOrdered = assets.every((one, at) => {
    const next = assets[at + 1];
    return next === undefined || compareAssets(one, next) < 0;
  });
  return isOrdered && assets.length <= STATED_ASSETS_MAX && statementText(found) === signed ? found : null;
}

type Named = Pick<StatedAsset, "mode" | "asset">;

export const compareAssets = (one: Named, other: Named): number =>
  compareTexts(one.mode, other.mode) || compareTexts(one.asset, other.asset);

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

type StatementWire = ReturnType<typeof wireOf>;

const wireOf = ({ number, instanceId, createdAt, posting, leftOut, assets }: Statement) => ({
  ...{ number, instance_id: instanceId, created_at: isoTime(createdAt), posting, left_out: leftOut },
  assets: assets.map(statedAssetWire),
});

export const owedWire = (owed: Owed) =>
  Object.fromEntries(OWED_PARTS.map((part) => [part, owed[part].toString()])) as Record<keyof Owed, string>;

export const statedAssetWire = ({ mode, asset, owed, leaves, root, holding }: StatedAsset) => ({
  ...{ mode, asset, owed: sumOwed(owed).toString() },
  ...owedWire(owed),
  ...{ leaves, root },
  holding: holding && {
    ...{ chain: holding.chain, token: holding.token, address: holding.address },
    balance: holding.seen?.balance.toString() ?? null,
    block: holding.seen?.block ?? null,
    block_hash: holding.seen?.blockHash ?? null,
  },
});

function statementOf({ instance_id, created_at, left_out, assets, ...rest }: StatementWire): Statement {
  return {
    ...{ number: rest.number, instanceId: instance_id, createdAt: Date.parse(created_at) },
    ...{ posting: rest.posting, leftOut: left_out },
    assets: assets.map(({ mode, asset, leaves, root, holding, ...parts }) => ({
      ...{ mode, asset, leaves, root },
      owed: Object.fromEntries(OWED_PARTS.map((part) => [part, BigInt(parts[part])])) as Owed,
      holding: holding && {
        ...{ chain: holding.chain, token: holding.token, address: holding.address },
        seen:
          holding.balance === null || holding.block === null || holding.block_hash === null
            ? null
            : {
                balance: BigInt(holding.balance),
                block: holding.block,
                blockHash: holding.block_hash,
              },
      },
    })),
  };
}

/** A sum of amounts, in digits. */
export const sum = kind(
  "a sum in digits",
  (value) => typeof value === "string" && /^(0|[1-9][0-9]{0,38})$/.test(value) && isSum(BigInt(value)),
);
export const mode = kind("live or sandbox", (value) => MODES.some((one) => one === value));

const statement = record({
  number: ordinal,
  instance_id: text,
  created_at: time,
  posting: count,
  left_out: count,
  assets: list(
    record({
      ...{ mode, asset: text, owed: sum, available: sum, held: sum, payable: sum, submitted: sum },
      ...{ leaves: count, root: hash },
      holding: orNull(
        record({
          ...{ chain: text, token: text, address: text, block: orNull(count) },
          balance: orNull(matching("a balance in digits", /^(0|[1-9][0-9]{0,77})$/)),
          block_hash: orNull(text),
        }),
      ),
    }),
  ),
});
