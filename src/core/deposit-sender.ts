import type { Mode } from "./roles.ts";

/** An address whose transfers to the treasury of a mode are deposits of an organisation. An address has one organisation of a mode. */
export type DepositSender = SenderName & {
  readonly organisationId: string;
  /** Whose it is, in the operator's words. */
  readonly note: string | null;
  readonly createdAt: number;
};

/** `address` is `0x` and 40 hex digits, in lower case. */
export type SenderName = { readonly mode: Mode; readonly address: string };

export const senderKey = ({ mode, address }: SenderName): string => `${mode} ${address}`;
