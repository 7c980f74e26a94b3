export type Asked = {
  readonly bytes: number;
  /** Who asks: an account, an address, an organisation. */
  readonly party: string;
  readonly live: boolean;
};

export type Claim = {
  readonly isGranted: boolean;
  /** Resolves once the bytes are granted. It never does where the claim ends before. */
  readonly granted: Promise<void>;
  /** Gives the bytes back, or stops waiting for them. A second call does nothing. */
  end(): void;
};

export type ByteBudgetLimits = {
  readonly bytesMax: number;
  /** Of these, how many only live parties may hold. */
  readonly liveBytes: number;
  /** How many one party may hold. A party that holds nothing gets what it asks for, however much that is. */
  readonly partyBytesMax: number;
  /** How many claims may wait, and how many of one party. */
  readonly waitingMax: number;
  readonly partyWaitingMax: number;
  /** How many bytes may be waited for, and half of that by one party: what waits takes memory elsewhere. */
  readonly waitingBytesMax: number;
};

/** Of a party that holds or waits. The numbers of grants rise, so the lower one has gone longer without. */
type Party = { held: number; waiting: number; waitingBytes: number; lastGrant: number };

/**
 * A bounded number of bytes that many parties share. Who asks for bytes that are not free waits; live parties come before
 * others, and among equals the one that has gone longest without. Who has waited for too long ends its claim.
 */
export class ByteBudget {
  private readonly parties = new Map<string, Party>();
  private waiting: HeldClaim[] = [];
  private waitingBytes = 0;
  private held = 0;
  private heldByOthers = 0;
  private grants = 0;

  constructor(private readonly limits: ByteBudgetLimits) {}

  /** The bytes that claims hold now. */
  get heldBytes(): number {
    return this.held;
  }

  /** Null where too many wait already. */
  claim(asked: Asked): Claim | null {
    const party = this.partyOf(asked.party);
    if (this.waiting.length === 0 && this.isWithinShare(asked) && this.fits(asked)) {
      this.take(asked);
      return new HeldClaim(this, asked, true);
    }
    if (!this.mayWait(asked.bytes, party)) {
      this.forgetIfDone(asked.party);
      return null;
    }
    const claim = new HeldClaim(this, asked, false);
    this.waiting.push(claim);
    this.countWaiting(claim, 1);
    this.serve();
    return claim;
  }

  /** A claim whose bytes are granted; null where they are not within this many milliseconds. */
  async claimWithin(asked: Asked, waitMs: number): Promise<Claim | null> {
    const claim = this.claim(asked);
    return claim && (claim.isGranted || (await grantedWithin(claim, waitMs))) ? claim : null;
  }

  /** Called when a claim ends. */
  ended(claim: HeldClaim): void {
    const { bytes, party, live } = claim.asked;
    const own = this.partyOf(party);
    if (claim.isGranted) {
      this.held -= bytes;
      if (!live) this.heldByOthers -= bytes;
      own.held -= bytes;
    } else {
      this.waiting = this.waiting.filter((one) => one !== claim);
      this.countWaiting(claim, -1);
    }
    this.forgetIfDone(party);
    if (this.waiting.length > 0) this.serve();
  }

  private partyOf(name: string): Party {
    let party = this.parties.get(name);
    if (party === undefined) {
      party = { held: 0, waiting: 0, waitingBytes: 0, lastGrant: -1 };
      this.parties.set(name, party);
    }
    return party;
  }

  private forgetIfDone(name: string): void {
    const party = this.parties.get(name);
    if (party?.held === 0 && party.waiting === 0) this.parties.delete(name);
  }

  private mayWait(bytes: number, own: Party): boolean {
    const { waitingMax, partyWaitingMax, waitingBytesMax } = this.limits;
    return (
      this.waiting.length < waitingMax &&
      own.waiting < partyWaitingMax &&
      this.waitingBytes + bytes <= waitingBytesMax &&
      own.waitingBytes + bytes <= waitingBytesMax / 2
    );
  }

  private countWaiting({ asked }: HeldClaim, sign: 1 | -1): void {
    const own = this.partyOf(asked.party);
    own.waiting += sign;
    own.waitingBytes += sign * asked.bytes;
    this.waitingBytes += sign * asked.bytes;
  }

  private isWithinShare({ bytes, party }: Asked): boolean {
    const { held } = this.partyOf(party);
    return held === 0 || held + bytes <= this.limits.partyBytesMax;
  }

  private fits({ bytes, live }: Asked): boolean {
    const { bytesMax, liveBytes } = this.limits;
    return this.held + bytes <= bytesMax && (live || this.heldByOthers + bytes <= bytesMax - liveBytes);
  }

  private take({ bytes, party, live }: Asked): void {
    this.held += bytes;
    if (!live) this.heldByOthers += bytes;
    const own = this.partyOf(party);
    own.held += bytes;
    own.lastGrant = this.grants++;
  }

  /** Whose turn it is. Who waits only for its own share holds up nobody else. */
  private next(): HeldClaim | undefined {
    const able = this.waiting.filter(({ asked }) => this.isWithinShare(asked));
    const lives = able.filter(({ asked }) => asked.live);
    const lastGrant = ({ asked }: HeldClaim): number => this.partyOf(asked.party).lastGrant;
    return (lives.length > 0 ? lives : able).reduce<HeldClaim | undefined>(
      (first, one) => (first && lastGrant(first) <= lastGrant(one) ? first : one),
      undefined,
    );
  }

  /** While the claim whose turn it is does not fit, all others wait: otherwise small claims would keep a large one waiting for ever. */
  private serve(): void {
    for (let turn = this.next(); turn && this.fits(turn.asked); turn = this.next()) {
      const served = turn;
      this.waiting = this.waiting.filter((one) => one !== served);
      this.countWaiting(served, -1);
      this.take(served.asked);
      served.grant();
    }
  }
}

class HeldClaim implements Claim {
  private state: "waiting" | "granted" | "ended";
  private readonly grants = Promise.withResolvers<void>();

  constructor(
    private readonly budget: ByteBudget,
    readonly asked: Asked,
    atOnce: boolean,
  ) {
    this.state = "waiting";
    if (atOnce) this.grant();
  }

  get isGranted(): boolean {
    return this.state === "granted";
  }

  get granted(): Promise<void> {
    return this.grants.promise;
  }

  grant(): void {
    this.state = "granted";
    this.grants.resolve();
  }

  end(): void {
    if (this.state === "ended") return;
    this.budget.ended(this);
    this.state = "ended";
  }
}

/** Whether a claim that waits is granted within this many milliseconds. If not, it has ended. */
export async function grantedWithin(claim: Claim, waitMs: number): Promise<boolean> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, waitMs);
  await Promise.race([claim.granted, late.promise]);
  clearTimeout(timer);
  if (!claim.isGranted) claim.end();
  return claim.isGranted;
}
