import type { Mode } from "./roles.ts";

/** Money that came in, as an admin recorded it. */
export type Deposit = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly asset: string;
  readonly amount: bigint;
  readonly reference: string | null;
  readonly createdAt: number;
};
