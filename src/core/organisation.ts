import { type Refusal, refuse } from "./errors.ts";

/** A customer of the instance. Everything but people's e-mails belongs to one. */
export type Organisation = {
  readonly id: string;
  readonly name: string;
  /** While it is on, no warrant opens; what is open goes on. */
  readonly killSwitch: boolean;
  /** Units of USDC above which a person signs with a passkey; null where there is no threshold. */
  readonly passkeyThreshold: bigint | null;
  readonly createdAt: number;
};

export const organisationNotFound = (): Refusal =>
  refuse("organisation_not_found", "There is no such organisation.");
