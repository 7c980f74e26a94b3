import { ByteBudget, type Claim, grantedWithin } from "../core/byte-budget.ts";
import type { Refusal } from "../core/errors.ts";

/** The memory for bodies that are being fetched (docs/idempotency, "Memory"). */

const MIB = 1024 * 1024;
const BYTES_MAX = 192 * MIB;
const LIVE_BYTES = 48 * MIB;
const WAITING_MAX = 256;
const WAIT_MS_MAX = 5_000;
/** As it came, and whole. */
const COPIES = 2;

export const createEvidenceBudget = (bytesMax = BYTES_MAX, waitingMax = WAITING_MAX): ByteBudget =>
  new ByteBudget({
    bytesMax,
    liveBytes: Math.min(LIVE_BYTES, bytesMax / 4),
    partyBytesMax: bytesMax / 2,
    waitingMax,
    partyWaitingMax: Math.ceil(waitingMax / 2),
    waitingBytesMax: Number.POSITIVE_INFINITY,
  });

/** For whom a body is fetched. */
export type EvidenceOwner = { readonly party: string; readonly live: boolean };

/** Other bodies take all memory, or took it for so long that this one came too late: nothing is said about its source. */
export class EvidenceBusy extends Error implements Refusal {
  readonly refused = "rate_limit_exceeded";
}

/** The memory that one fetch takes. A body of at most SMALL_BYTES as it comes needs none: checks are limited in their number. */
export class EvidenceRoom {
  static readonly SMALL_BYTES = 64 * 1024;
  hasWaited = false;
  private claim: Claim | null = null;

  constructor(
    private readonly budget: ByteBudget,
    private readonly owner: EvidenceOwner = { party: "", live: false },
  ) {}

  /** Takes memory for a body of this many bytes, unless it has some. Rejects with `EvidenceBusy` where none is free in time. */
  async take(bytes: number): Promise<void> {
    if (this.claim) return;
    const claim = this.budget.claim({ ...this.owner, bytes: COPIES * bytes });
    if (!claim) throw new EvidenceBusy("too many bodies wait for memory");
    this.claim = claim;
    if (claim.isGranted) return;
    this.hasWaited = true;
    if (!(await grantedWithin(claim, WAIT_MS_MAX))) throw new EvidenceBusy("other bodies use all memory");
  }

  end(): void {
    this.claim?.end();
  }
}
