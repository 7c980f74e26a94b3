import type { Refusal } from "../../core/errors.ts";
import type { SharedSettings } from "../instances.ts";
import type { Claims } from "./claims.ts";
import { deleteInstance, insertInstance, renewInstance } from "./instance-rows.ts";
import type { OneConnection } from "./one-connection.ts";

/** How an instance stands with the others. It does jobs only while it was `renewed`, and begins nothing new while it is `lost`. */
export type Standing = "renewed" | "not_renewed" | "lost";

export type Times = {
  /** How often an instance says that it is alive. */
  readonly everyMs: number;
  /** How long the others believe it. */
  readonly aheadMs: number;
  /** How long an answer may take. */
  readonly waitMs: number;
};

/** The clocks of two machines do not go equally fast. A lease is not used in the last part of its time. */
const PART_LEFT = 1 / 20;

/** Where a renewal failed, the next one comes so many times sooner. */
const SOONER = 5;

type Member = {
  readonly id: string;
  /** Until when the others believe that it is alive, by this process's clock; they believe it that long at least. */
  until: number;
  /** The ids of all that were alive at the last answer, this one too. */
  live: readonly string[];
};

export type MembershipOptions = {
  readonly connection: OneConnection;
  /** Makes an id that no instance ever had. */
  readonly newId: () => string;
  /** A clock that never jumps, in milliseconds, and that goes on while the machine is suspended. */
  readonly steadyNow: () => number;
  /** Called where it stands otherwise than before. */
  readonly onStanding: (standing: Standing) => void;
  readonly times: Times;
};

/** One process among the instances: it says again and again that it is alive, and becomes a new instance where it was dead. */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #claims: () => Claims;
  /** The leases that are wanted, by name, with the tokens of those that it has. */
  readonly #leases = new Map<string, number | null>();
  #settings: SharedSettings | null = null;
  #me: Member | null = null;
  #standing: Standing = "renewed";
  #timer: Timer | null = null;
  #beating: Promise<void> = Promise.resolve();
  #asked: Promise<void> | null = null;

  constructor(options: MembershipOptions, claims: () => Claims) {
    this.#options = options;
    this.#claims = claims;
  }

  /** The instance that it is now; null before it joins, and after it was lost. */
  get me(): Readonly<Member> | null {
    return this.#me;
  }

  /** Whether it has joined, and not left. A command beside the servers does not join. */
  get hasJoined(): boolean {
    return this.#settings !== null;
  }

  isLost(): boolean {
    return this.hasJoined && (this.#me === null || this.#options.steadyNow() >= this.#me.until);
  }

  async join(settings: SharedSettings): Promise<Refusal | null> {
    const refused = await this.#enter(settings);
    if (refused) return refused;
    this.#settings = settings;
    await this.#beat();
    this.#keepBeating();
    return null;
  }

  want(lease: string): void {
    if (this.#leases.has(lease)) return;
    this.#leases.set(lease, null);
    if (this.hasJoined) void this.#beat();
  }

  tokenOf(lease: string): number | null {
    const { steadyNow, times } = this.#options;
    const isHeld =
      this.#me !== null &&
      this.#standing === "renewed" &&
      steadyNow() < this.#me.until - times.aheadMs * PART_LEFT;
    return isHeld ? (this.#leases.get(lease) ?? null) : null;
  }

  async leave(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#settings = null;
    await this.#beating;
    const left = this.#me;
    this.#me = null;
    // Where this fails, the others wait until it has ended by itself.
    if (left) await this.#options.connection.run((sql) => deleteInstance(sql, left.id)).catch(() => {});
  }

  /** Becomes an instance under a new id. The one that it was before, if any, is dead. */
  async #enter(settings: SharedSettings): Promise<Refusal | null> {
    const { connection, newId, steadyNow, times } = this.#options;
    const id = newId();
    const sentAt = steadyNow();
    const entered = await connection.run((sql) =>
      sql.begin(async (tx) => {
        const live = await insertInstance(tx, { id, settings, aheadMs: times.aheadMs });
        if (!("refused" in live)) await this.#claims().moveTo(tx, id);
        return live;
      }),
    );
    if ("refused" in entered) return entered;
    for (const name of this.#leases.keys()) this.#leases.set(name, null);
    this.#me = { id, until: sentAt + times.aheadMs, live: entered };
    return null;
  }

  /** Answers false where the instance is dead. */
  async #renew(me: Member): Promise<boolean> {
    const { connection, steadyNow, times } = this.#options;
    const names = [...this.#leases.keys()];
    const sentAt = steadyNow();
    const renewed = await connection.run((sql) =>
      renewInstance(sql, { id: me.id, names, aheadMs: times.aheadMs }),
    );
    if (renewed === null) return false;
    me.until = sentAt + times.aheadMs;
    me.live = renewed.live;
    // A lease that came to be wanted meanwhile was not asked for.
    for (const name of names) this.#leases.set(name, renewed.tokens.get(name) ?? null);
    return true;
  }

  async #beatOnce(): Promise<void> {
    if (this.#settings === null) return;
    try {
      if (this.#me === null || !(await this.#renew(this.#me))) {
        this.#me = null;
        const refused = await this.#enter(this.#settings);
        if (refused) throw new Error(refused.message);
        if (this.#me !== null) await this.#renew(this.#me);
      }
      this.#stand("renewed");
      await this.#claims().flush();
    } catch {
      this.#stand(this.isLost() ? "lost" : "not_renewed");
    }
  }

  #stand(standing: Standing): void {
    if (standing !== this.#standing) this.#options.onStanding(standing);
    this.#standing = standing;
  }

  /** One beat is under way at a time; whoever asks meanwhile shares the next. */
  #beat(): Promise<void> {
    this.#asked ??= this.#beating.then(() => {
      this.#asked = null;
      this.#beating = this.#beatOnce();
      return this.#beating;
    });
    return this.#asked;
  }

  #keepBeating(): void {
    const { everyMs } = this.#options.times;
    this.#timer = setTimeout(
      async () => {
        await this.#beat();
        if (this.#timer !== null) this.#keepBeating();
      },
      this.#standing === "renewed" ? everyMs : everyMs / SOONER,
    );
  }
}
