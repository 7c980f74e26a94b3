import { type Refusal, refuse } from "./errors.ts";

/** A customer of the instance. All data belongs to one organisation; only people's e-mails are unique in the instance. */
export type Organisation = {
  readonly id: string;
  readonly name: string;
  /** While it is on, no new warrant opens. Warrants that are already open continue. */
  readonly killSwitch: boolean;
  /** Units of USDC above which a person signs with a passkey; null where there is no threshold. */
  readonly passkeyThreshold: bigint | null;
  /** Whether public receipts leave the specs of its warrants out, and show their hashes alone. */
  readonly hidesSpecs: boolean;
  /** Whether people from operator up must prove a passkey when they sign in. */
  readonly secondFactor: boolean;
  /** Whether people may decide escalations by buttons in a chat. */
  readonly messagingDecisions: boolean;
  readonly createdAt: number;
};

export const organisationNotFound = (): Refusal =>
  refuse("organisation_not_found", "There is no such organisation.");
