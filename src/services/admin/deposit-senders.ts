import type { DepositSender } from "../../core/deposit-sender.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { parseEvmAddress, ZERO_ADDRESS } from "../../core/evm-address.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { type SenderResource, senderResource } from "../../resources/chain-transfer.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseInteger, refuseText, refuseUnlisted } from "../fields.ts";
import { firstOf } from "../page-of-list.ts";
import { administer, MACHINE, readableScope } from "./authority.ts";

/**
 * Whose deposits come from which addresses (docs/money, "Deposits on a chain"). Only the machine's operator says so: whoever
 * registers somebody else's address gets their money.
 */

type SenderInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  /** `0x` and 40 hex digits, with its checksum or in one case. */
  readonly address: string;
};

/** Whose it is already is told, since the operator of the machine sees all organisations. */
const taken = ({ organisationId }: DepositSender): Refusal =>
  refuseField("address", `belongs to ${organisationId} already; remove it there first`);

/** Registers an address: what it sends from now on is a deposit of the organisation. Registered again, it stays as it is. */
export async function addDepositSender(
  ctx: Context,
  input: SenderInput & { readonly note?: string },
): Promise<SenderResource | Refusal> {
  const { organisation_id: organisationId, mode, note = null } = input;
  const refused = refuseUnlisted("mode", mode, MODES) ?? (note === null ? null : refuseText("note", note));
  if (refused) return refused;
  const address = senderIn(ctx, input);
  if (isRefusal(address)) return address;
  return administer(ctx, MACHINE, "admin", {
    scope: { organisationId, mode },
    needs: { depositSender: { mode, address } },
    decide({ depositSender, recordedAt }): Audited<SenderResource> {
      if (depositSender)
        return {
          answer:
            depositSender.organisationId === organisationId
              ? senderResource(depositSender)
              : taken(depositSender),
        };
      const row: DepositSender = { mode, address, organisationId, note, createdAt: recordedAt };
      const answer = senderResource(row);
      return {
        answer,
        put: [{ kind: "depositSender", before: null, row }],
        entries: [{ action: "deposit_sender.added", subject: address, before: null, after: answer }],
      };
    },
  });
}

/** The address in lower case; refused where it can be nobody's. */
function senderIn({ treasuries }: Context, { mode, address: text }: SenderInput): string | Refusal {
  const address = parseEvmAddress(text);
  if (address === null)
    return refuseField("address", "must be 0x and 40 hex digits, with its checksum or in one case");
  if (address === ZERO_ADDRESS)
    return refuseField("address", "must be somebody's address; nobody has the zero address");
  const isOurs = treasuries.some((one) => one.mode === mode && one.address.toLowerCase() === address);
  return isOurs
    ? refuseField("address", "must be a sender's address; this one is the treasury's own")
    : address;
}

/** Removes an address: what it sends from now on waits for a person. What was credited stays. */
export async function removeDepositSender(
  ctx: Context,
  input: SenderInput,
): Promise<SenderResource | Refusal> {
  const { organisation_id: organisationId, mode } = input;
  const refused = refuseUnlisted("mode", mode, MODES);
  if (refused) return refused;
  const address = parseEvmAddress(input.address) ?? input.address;
  return administer(ctx, MACHINE, "admin", {
    scope: { organisationId, mode },
    needs: { depositSender: { mode, address } },
    decide({ depositSender: row }): Audited<SenderResource> {
      if (row?.organisationId !== organisationId)
        return {
          answer: refuse(
            "deposit_sender_not_found",
            `${address} is no sender of deposits of ${organisationId}, ${mode}.`,
          ),
        };
      const before = senderResource(row);
      return {
        answer: before,
        put: [],
        deleted: [{ kind: "depositSender", row }],
        entries: [{ action: "deposit_sender.removed", subject: address, before, after: null }],
      };
    },
  });
}

type SenderList = {
  readonly object: "list";
  readonly data: readonly SenderResource[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
};

/** The senders of an organisation and mode, in the order of their addresses. `limit` is 1 to 1,000; without it, 100. */
export async function listDepositSenders(
  ctx: Context,
  input: Omit<SenderInput, "address"> & { readonly limit?: number; readonly starting_after?: string },
): Promise<SenderList | Refusal> {
  const { limit = 100, starting_after: after = null } = input;
  const refused = refuseInteger("limit", limit, 1, 1_000);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, MACHINE, "admin", input);
    if (isRefusal(scope)) return scope;
    const found = await reader.depositSenders.list(scope, after, limit + 1);
    const { rows, more } = firstOf(found, limit, ({ address }) => address);
    return { object: "list", data: rows.map(senderResource), ...more };
  });
}
