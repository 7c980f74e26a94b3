import type { Refusal } from "../core/errors.ts";

/**
 * What the processes that serve one ledger agree on: which jobs each of them does, and which work under way is whose. Each process
 * is an instance here, for as long as the others hear of it.
 */
export type Instances = {
  /** Whether this process alone serves the ledger. Whatever is under way when it starts was then cut off. */
  readonly alone: boolean;
  /**
   * Becomes an instance. Refused where a live one has another value of a setting that all must have in common; the refusal names
   * the setting. An instance that was lost becomes one again by itself.
   */
  join(settings: SharedSettings): Promise<Refusal | null>;
  /** Whether the others may take this one for dead. It then begins nothing new. */
  isLost(): boolean;
  /** The lease of that name. From now on this instance wants it, and takes it where nobody has it. */
  lease(name: string): Lease;
  /**
   * Does work that goes on between two commits. While it does, and this instance is alive, `owned` names the work for all
   * instances: that is known to them before the work begins.
   *
   * @param id what the work moves, such as a warrant
   * @throws UndoneFault where this instance cannot tell them, so that nothing was begun
   */
  owning<Result>(id: string, work: () => Promise<Result>): Promise<Result>;
  /** Of these, what a live instance works on, this one too. A process that is alone does not say it. */
  owned(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Whether what belongs to one instance at a time, such as the deliveries to an endpoint, belongs to this one. */
  isMine(id: string): boolean;
  /** Gives everything back, so that others need not wait. Call it when jobs and requests have ended. */
  leave(): Promise<void>;
};

/** Settings by their names, with which all instances of a ledger work. A secret stands as its SHA-256. */
export type SharedSettings = Readonly<Record<string, string>>;

/** The right to do something alone. It ends by itself where it is not renewed. */
export type Lease = {
  /** A number that rises each time the lease is taken, by whomever; null where this instance does not have it. */
  token(): number | null;
};

/** The only process of its ledger: it has every lease, and need not tell anybody what it works on. */
export const ALONE: Instances = {
  alone: true,
  join: async () => null,
  isLost: () => false,
  lease: () => ({ token: () => 1 }),
  owning: (_, work) => work(),
  owned: async () => new Set(),
  isMine: () => true,
  leave: async () => {},
};
