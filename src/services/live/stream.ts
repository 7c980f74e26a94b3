import type { PersonCaller } from "../../core/roles.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { After } from "../auth/waiting-room.ts";
import type { Changes } from "./changes.ts";

/** One stream of server-sent events, of one sign-in, organisation and mode. */

/** A stream tells what changed once in this time at most. */
const GAP_MS = SECOND_MS / 2;
/** A stream says at least so often that it is there. A connection that is silent for ten seconds is closed. */
const BEAT_MS = 4 * SECOND_MS;
/** How soon a browser asks again for a stream that broke off. */
const RETRY_MS = 2 * SECOND_MS;

/** Why a stream ended. `gone`: its reader left. `stopping`: the service stops, and the reader asks again. */
export type End = "signed_out" | "other_mode" | "replaced" | "stopping" | "gone";

export type Stream = {
  readonly caller: PersonCaller;
  readonly body: ReadableStream<Uint8Array>;
  /** Something has changed that it may have to tell. */
  wake(): void;
  /** The reader's sign-in may have ended. */
  lookAtSignIn(): void;
  end(why: End): void;
};

/** The person of a sign-in as they are now; null where it has ended. */
export type CallerNow = (signInHash: string) => Promise<PersonCaller | null>;

type StreamParts = {
  readonly callerNow: CallerNow;
  readonly after: After;
  readonly changes: Changes;
  /** A random id of this run of the process. Numbers of changes from another run mean nothing here. */
  readonly run: string;
  /** Called when it has ended, for whatever reason. */
  readonly onEnd: (stream: Stream) => void;
};

/** @param heardTo the number of the change up to which the reader has heard; null where that is not known */
export function createStream(parts: StreamParts, caller: PersonCaller, heardTo: number | null): Stream {
  const { after, changes, run } = parts;
  const state = {
    caller,
    heardTo,
    isQuiet: true,
    isBeatDue: false,
    mustLook: false,
    end: null as End | null,
  };
  let wake = () => {};
  let timers: readonly { cancel(): void }[] = [];

  function set(ms: number, change: Partial<typeof state>) {
    return after(ms, () => {
      Object.assign(state, change);
      wake();
    });
  }

  function setTimers(): void {
    for (const timer of timers) timer.cancel();
    state.isBeatDue = false;
    timers = state.end ? [] : [set(GAP_MS, { isQuiet: true }), set(BEAT_MS, { isBeatDue: true })];
  }

  function end(why: End): void {
    if (state.end) return;
    state.end = why;
    setTimers();
    parts.onEnd(stream);
    wake();
  }

  /** What a reader who may still hear it is told; null where nothing changed for them. Ends the stream of who may not. */
  async function look(): Promise<string | null> {
    state.mustLook = false;
    const present = await parts.callerNow(caller.signInHash);
    if (!present || present.owesPasskey) end("signed_out");
    else if (present.mode !== caller.mode) end("other_mode");
    if (!present || state.end) return null;
    state.caller = present;
    const { names } = changes.since(caller, state.heardTo, present.role);
    state.heardTo = changes.sequence();
    if (names !== null && names.length === 0) return null;
    return `id: ${run}.${state.heardTo}\nevent: changed\ndata: ${JSON.stringify({ names })}\n\n`;
  }

  /** Resolves with the next text for the reader; with null at the end of the stream. */
  async function next(): Promise<string | null> {
    while (!state.end) {
      const { isBeatDue } = state;
      const hasNews = state.heardTo === null || changes.newestOf(caller) > state.heardTo;
      if (!state.mustLook && !isBeatDue && !(state.isQuiet && hasNews)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      const told = await look();
      state.isQuiet = false;
      setTimers();
      if (told !== null) return told;
      if (isBeatDue && !state.end) return ": still here\n\n";
    }
    return null;
  }

  const stream: Stream = {
    get caller() {
      return state.caller;
    },
    body: bodyOf(next, () => state.end, end),
    wake: () => wake(),
    lookAtSignIn() {
      state.mustLook = true;
      wake();
    },
    end,
  };
  setTimers();
  return stream;
}

/** Nothing is made before it can be sent: a reader who takes nothing has one text waiting at most. */
function bodyOf(
  next: () => Promise<string | null>,
  ended: () => End | null,
  end: (why: End) => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let isBegun = false;
  return new ReadableStream(
    {
      async pull(controller) {
        // The first text says that the stream is there, so that a proxy in between sends the headers on.
        const text = isBegun ? await next() : `retry: ${RETRY_MS}\n\n`;
        isBegun = true;
        const why = ended();
        if (why === "gone") return;
        if (text !== null) return controller.enqueue(encoder.encode(text));
        if (why !== "stopping")
          controller.enqueue(encoder.encode(`event: end\ndata: ${JSON.stringify({ why })}\n\n`));
        controller.close();
      },
      cancel: () => end("gone"),
    },
    { highWaterMark: 0 },
  );
}
