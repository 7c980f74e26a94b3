import type { AuditAction } from "../../core/audit-entry.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { AMOUNT_MAX, parseAmount } from "../../core/money.ts";
import type { Organisation } from "../../core/organisation.ts";
import { relyingPartyOf } from "../../core/passkey.ts";
import type { Role } from "../../core/roles.ts";
import { organisationResource } from "../../resources/organisation.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";

type OrganisationResource = ReturnType<typeof organisationResource>;

/** Stops new warrants of an organisation in both modes, or allows them again. Open warrants continue. */
export const setKillSwitch = (
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly on: boolean },
): Promise<OrganisationResource | Refusal> =>
  changeAsAdmin(ctx, authority, input.organisation_id, {
    action: "kill_switch.changed",
    changed: { killSwitch: input.on },
  });

/** Sets the units of USDC above which a person signs with a passkey; null turns the threshold off. */
export async function setPasskeyThreshold(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly amount: string | null },
): Promise<OrganisationResource | Refusal> {
  const refused = refuseAuthority(authority, "owner");
  if (refused) return refused;
  const passkeyThreshold = input.amount === null ? null : parseAmount(input.amount);
  if (input.amount !== null && passkeyThreshold === null)
    return refuseField("amount", `must be a string of digits, at most ${AMOUNT_MAX}`);
  return changeOrganisation(ctx, authority, "owner", input.organisation_id, {
    action: "passkey_threshold.changed",
    changed: { passkeyThreshold },
  });
}

/** Leaves the specs of all warrants out of their public receipts, settled ones among them, or shows them there again. */
export const setReceiptSpecs = (
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly hidden: boolean },
): Promise<OrganisationResource | Refusal> =>
  changeAsAdmin(ctx, authority, input.organisation_id, {
    action: "receipt_specs.changed",
    changed: { hidesSpecs: input.hidden },
  });

/** Lets people decide escalations by buttons in their chats, or no more (docs/decisions, "Deviations from the interface"). */
export const setMessagingDecisions = (
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly on: boolean },
): Promise<OrganisationResource | Refusal> =>
  changeAsAdmin(ctx, authority, input.organisation_id, {
    action: "messaging_decisions.changed",
    changed: { messagingDecisions: input.on },
  });

/**
 * Asks people from operator up for a passkey, or no more. Refused where the service's address allows no passkeys, since
 * nobody could enrol one.
 */
export async function setSecondFactor(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly on: boolean },
): Promise<OrganisationResource | Refusal> {
  const refused = refuseAuthority(authority, "owner");
  if (refused) return refused;
  const party = input.on ? relyingPartyOf(ctx.baseUrl) : null;
  if (isRefusal(party)) return party;
  return changeOrganisation(ctx, authority, "owner", input.organisation_id, {
    action: "second_factor.changed",
    changed: { secondFactor: input.on },
  });
}

type Change = {
  readonly action: AuditAction;
  readonly changed: Partial<
    Pick<
      Organisation,
      "killSwitch" | "passkeyThreshold" | "hidesSpecs" | "secondFactor" | "messagingDecisions"
    >
  >;
};

const changeAsAdmin = async (
  ctx: Context,
  authority: Authority,
  organisationId: string,
  change: Change,
): Promise<OrganisationResource | Refusal> =>
  refuseAuthority(authority, "admin") ?? changeOrganisation(ctx, authority, "admin", organisationId, change);

/** Changes a setting. Where it has this value already, nothing is written. */
function changeOrganisation(
  ctx: Context,
  authority: Authority,
  role: Role,
  organisationId: string,
  { action, changed }: Change,
): Promise<OrganisationResource | Refusal> {
  return administer(ctx, authority, role, {
    scope: { organisationId, mode: "live" },
    needs: {},
    decide: ({ organisation: before }): Audited<OrganisationResource> => {
      const row = { ...before, ...changed };
      const answer = organisationResource(row);
      if (Bun.deepEquals(row, before)) return { answer };
      return {
        answer,
        put: [{ kind: "organisation", before, row }],
        entries: [{ action, subject: before.id, before: organisationResource(before), after: answer }],
      };
    },
  });
}
