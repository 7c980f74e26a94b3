import { type Refusal, refuse } from "../../core/errors.ts";
import type { PersonCaller } from "../../core/roles.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Scope } from "../../store/scope.ts";
import type { Store } from "../../store/store.ts";
import type { After } from "../auth/waiting-room.ts";
import { createChanges, keyOf } from "./changes.ts";
import { type News, newsIn, newsOf } from "./news.ts";
import { type CallerNow, createStream, type Stream } from "./stream.ts";

/**
 * The streams by which pages hear what changed (docs/console, "Live"). They tell names alone: what they name is read
 * again by whoever hears them, with what they may see by then.
 */

export type LiveLimits = {
  /** How many streams there are in all, and of these in the sandbox, of one organisation and of one person. */
  readonly all: number;
  readonly sandbox: number;
  readonly organisation: number;
  readonly person: number;
};
const LIMITS: LiveLimits = { all: 256, sandbox: 128, organisation: 64, person: 8 };

/** How often it is looked whether another process has written. */
const OTHERS_MS = SECOND_MS;

type LiveParts = {
  readonly store: Pick<Store, "watch" | "newsOfOthers">;
  readonly callerNow: CallerNow;
  readonly after: After;
  readonly randomByte: () => number;
  readonly limits?: LiveLimits;
};

export type Live = {
  /**
   * Where the reader of a page stands: a stream that begins there tells everything that changed after the page was read.
   * It has to be asked for before the page is read.
   */
  position(): string;
  /** Remembers what changes there from now on. */
  follow(scope: Scope): void;
  /** @param position what the reader has heard: of a page, or of the last event before a cut; null where it is not known */
  open(caller: PersonCaller, position: string | null): ReadableStream<Uint8Array> | Refusal;
  /** How many streams are open. */
  count(): number;
  /** Ends all streams, and opens no more. */
  close(): void;
};

export function createLive({ store, callerNow, after, randomByte, limits = LIMITS }: LiveParts): Live {
  const changes = createChanges();
  const streams = new Set<Stream>();
  // Numbers of another run of the process mean nothing here.
  const run = Buffer.from(Array.from({ length: 6 }, randomByte)).toString("hex");
  const parts = { callerNow, after, changes, run, onEnd: (ended: Stream) => void streams.delete(ended) };
  let watching: (() => void) | null = null;
  let looking: { cancel(): void } | null = null;
  let isClosed = false;

  function tell({ heard, isOfPeople }: News): void {
    const noted = new Set<string>();
    for (const one of heard) if (changes.note(one)) noted.add(keyOf(one.scope));
    for (const stream of streams) {
      if (isOfPeople) stream.lookAtSignIn();
      else if (noted.has(keyOf(stream.caller))) stream.wake();
    }
  }

  /** Also begins to hear of what this process writes. */
  function lookForOthers(): void {
    watching ??= store.watch((writes) => tell(newsOf(writes)));
    const news = store.newsOfOthers();
    for (const text of news ?? []) tell(newsIn(text));
    if (news !== null) return;
    changes.forgetAll();
    for (const stream of streams) stream.lookAtSignIn();
  }

  function lookAgain(): void {
    looking ??= after(OTHERS_MS, () => {
      looking = null;
      lookForOthers();
      if (streams.size > 0) lookAgain();
    });
  }

  return {
    position() {
      lookForOthers();
      return `${run}.${changes.sequence()}`;
    },
    follow: changes.follow,
    open(caller, position) {
      const full = isClosed ? FULL : makeRoom([...streams], caller, limits);
      if (full) return full;
      lookForOthers();
      changes.follow(caller);
      const stream = createStream(parts, caller, numberIn(position, run, changes.sequence()));
      streams.add(stream);
      lookAgain();
      return stream.body;
    },
    count: () => streams.size,
    close() {
      isClosed = true;
      for (const stream of [...streams]) stream.end("stopping");
      looking?.cancel();
      watching?.();
    },
  };
}

const FULL = refuse(
  "rate_limit_exceeded",
  "As many pages as there may be show by themselves what changes. Reload yours to see it.",
);

/** Refuses one stream too many. A person's own oldest one makes room for their newest. */
function makeRoom(
  open: readonly Stream[],
  { organisationId, mode, userId }: PersonCaller,
  limits: LiveLimits,
): Refusal | null {
  const count = (isCounted: (caller: PersonCaller) => boolean): number =>
    open.filter(({ caller }) => isCounted(caller)).length;
  const own = open.filter(({ caller }) => caller.userId === userId);
  if (own.length >= limits.person) {
    own[0]?.end("replaced");
    return null;
  }
  const isFull =
    open.length >= limits.all ||
    count((caller) => caller.organisationId === organisationId) >= limits.organisation ||
    (mode === "sandbox" && count((caller) => caller.mode === mode) >= limits.sandbox);
  return isFull ? FULL : null;
}

/** The number in a position of this run of the process; null in any other. */
function numberIn(position: string | null, run: string, newest: number): number | null {
  const [, of, digits] = /^([0-9a-f]{12})\.(\d{1,15})$/.exec(position ?? "") ?? [];
  return of === run && Number(digits) <= newest ? Number(digits) : null;
}
