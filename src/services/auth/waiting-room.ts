/** Who waits: a try for an account, from a network. */
export type Guest = {
  readonly account: string;
  readonly network: string;
  /** How often the network has tried in vain. Whoever has more makes room for whoever has less. */
  readonly weight: number;
};

export type RoomLimits = {
  /** How many tries wait in all, for one account, from one network, and of these for one account. */
  readonly all: number;
  readonly ofAccount: number;
  readonly ofNetwork: number;
  readonly ofBoth: number;
};

const ROOM_LIMITS: RoomLimits = { all: 256, ofAccount: 64, ofNetwork: 8, ofBoth: 2 };

/** Calls back after this many milliseconds, unless it is cancelled before. */
export type After = (ms: number, then: () => void) => { cancel(): void };

type Waiting = Guest & { readonly leave: (waited: boolean) => void };

/**
 * Where tries wait until they are answered. Each holds a connection, so there are few places. Where they are all taken, a try
 * from a network that has tried less takes the place of one from a network that has tried more: somebody who comes from
 * elsewhere is kept out only for as long as those who guess have networks that have not tried yet.
 */
export class WaitingRoom {
  private readonly waiting = new Set<Waiting>();
  private isClosed = false;

  constructor(
    private readonly after: After,
    private readonly limits: RoomLimits = ROOM_LIMITS,
  ) {}

  countOf(account: string): number {
    return this.ofAccount(account).length;
  }

  /** Waits. False, at once or later, where there is no place, or not any more. */
  wait(guest: Guest, ms: number): Promise<boolean> {
    if (this.isClosed || !this.hasPlace(guest)) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = this.after(ms, () => leave(true));
      const leave = (waited: boolean): void => {
        timer.cancel();
        this.waiting.delete(entry);
        resolve(waited);
      };
      const entry: Waiting = { ...guest, leave };
      this.waiting.add(entry);
    });
  }

  /** Lets nobody wait any more. */
  close(): void {
    this.isClosed = true;
    for (const entry of this.waiting) entry.leave(false);
  }

  private ofAccount(account: string): readonly Waiting[] {
    return [...this.waiting].filter((entry) => entry.account === account);
  }

  /** Whether there is a place for this one, after the heaviest had to leave where it must. */
  private hasPlace({ account, network, weight }: Guest): boolean {
    const { all, ofAccount, ofNetwork, ofBoth } = this.limits;
    const forAccount = this.ofAccount(account);
    const isFrom = (entry: Waiting): boolean => entry.network === network;
    if (forAccount.filter(isFrom).length >= ofBoth) return false;
    if ([...this.waiting].filter(isFrom).length >= ofNetwork) return false;
    if (forAccount.length >= ofAccount) return makeWay(forAccount, weight);
    return this.waiting.size < all || makeWay([...this.waiting], weight);
  }
}

function makeWay(waiting: readonly Waiting[], weight: number): boolean {
  const heaviest = waiting.reduce((most, entry) => (entry.weight > most.weight ? entry : most));
  if (heaviest.weight <= weight) return false;
  heaviest.leave(false);
  return true;
}
