import { createHmac } from "node:crypto";
import { canonicalJson } from "../canonical.ts";
import { leafHash } from "../merkle.ts";
import type { Mode } from "../roles.ts";
import type { SumNode } from "./sum-tree.ts";

/** To whom something is owed: to an organisation, or to a payee of it. */
export type Creditor = {
  readonly organisationId: string;
  readonly mode: Mode;
  readonly asset: string;
  /** Null where it is owed to the organisation itself. */
  readonly payee: string | null;
};

/** A leaf of the tree of an asset in one mode (docs/solvency, "The tree"). */
export type Leaf = Creditor & {
  /** Of an organisation what is available and held, of a payee what is payable and submitted. */
  readonly amount: bigint;
  /** 64 hex digits. Whoever does not know it cannot try out whose a leaf is. */
  readonly salt: string;
};

export type LeafWire = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly asset: string;
  readonly payee: string | null;
  readonly amount: string;
  readonly salt: string;
};

export const leafWire = ({ organisationId, mode, asset, payee, amount, salt }: Leaf): LeafWire => ({
  ...{ organisation_id: organisationId, mode, asset, payee, amount: amount.toString(), salt },
});

const utf8 = new TextEncoder();

/** The leaf's node: the hash of its RFC 8785 text as RFC 6962 hashes a leaf, and its amount. */
export const nodeOfLeaf = (leaf: LeafWire): SumNode => ({
  hash: leafHash(utf8.encode(canonicalJson(leaf))),
  sum: BigInt(leaf.amount),
});

/** The salt of a creditor in one statement: nobody learns it from those of others, or of other statements. */
export const saltOf = (seed: Uint8Array, { organisationId, mode, asset, payee }: Creditor): string =>
  createHmac("sha256", seed)
    .update(JSON.stringify([organisationId, mode, asset, payee]))
    .digest("hex");
