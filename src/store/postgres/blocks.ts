import type { Answer, Statement } from "./client.ts";

/** How many positions one number of the sequence stands for. */
export const BLOCK = 1024;

/** Takes blocks of positions. Taken under its locks, they rise in the order of commits. */
export const nextBlocks = (count: number): Statement => ({
  text: "SELECT nextval('positions') AS block FROM generate_series(1, $1::int8)",
  params: [BigInt(count)],
});

/** The positions of the blocks that were answered. */
export const positionsOf = (blocks: Answer | undefined): readonly number[] =>
  ((blocks ?? []) as readonly { readonly block: bigint }[]).flatMap(({ block }) =>
    Array.from({ length: BLOCK }, (_, at) => Number(block) + at),
  );
