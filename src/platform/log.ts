import { appendFileSync } from "node:fs";
import { printable } from "../core/hidden-characters.ts";

/**
 * Structured log lines on stderr, or in a file: one JSON object each. Fields carry ids, never secrets. What strangers wrote, such as a message
 * of a source, is in a string of the object; its hidden characters are escaped there.
 */
type Fields = Readonly<Record<string, string | number | null>>;

let writeLine = (line: string): void => void process.stderr.write(line);

/** From now on, log lines go to the end of this file. It is made where it is missing. */
export function logTo(file: string): void {
  writeLine = (line) => appendFileSync(file, line, { mode: 0o600 });
}

function write(level: "error" | "warning" | "info", message: string, fields: Fields): void {
  const line = { time: new Date().toISOString(), level, message, ...fields };
  writeLine(`${printable(JSON.stringify(line))}\n`);
}

/** Logs a fault. */
export function logError(message: string, error: unknown, fields: Fields = {}): void {
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  write("error", message, { ...fields, error: cause });
}

/** Logs what somebody should look at. */
export const logWarning = (message: string, fields: Fields = {}): void => write("warning", message, fields);

/** Logs what is worth knowing later. */
export const logInfo = (message: string, fields: Fields = {}): void => write("info", message, fields);

const REPEATS_EVERY_MS = 60_000;
/**
 * The most fields of one message, and the most causes of these, that are counted separately. All others count
 * as one.
 */
const SUBJECTS_MAX = 100;
const CAUSES_MAX = 10;
const CAUSE_LENGTH_MAX = 200;
const OTHERS = "others";

type Fault = { loggedAt: number; unlogged: number; error: unknown; fields: Fields };

/**
 * Logs faults that repeat, such as those of a job while the disk is full. The first fault with a message, fields and a cause is
 * logged at once, then at most one a minute; `unlogged` says how many were left out before it. A flood of one message does not
 * hide other messages, and a flood of new causes does not hide other fields.
 *
 * @param now milliseconds of a clock that never jumps
 */
export function createFaultLog(log: typeof logError, now: () => number): typeof logError {
  /**
   * Faults by message, fields and cause. The number of messages in the code is its only bound, and is small.
   */
  const known = new Map<string, Map<string, Map<string, Fault>>>();
  function logNow(message: string, fault: Fault): void {
    const { error, fields, unlogged } = fault;
    log(message, error, unlogged > 0 ? { ...fields, unlogged } : fields);
    fault.loggedAt = now();
    fault.unlogged = 0;
  }
  function forgetQuiet(message: string, subjects: Map<string, Map<string, Fault>>): void {
    for (const [subject, causes] of subjects) {
      for (const [cause, fault] of causes) {
        if (now() - fault.loggedAt < REPEATS_EVERY_MS) continue;
        if (fault.unlogged === 0) {
          causes.delete(cause);
        } else {
          // The latest fault that was left out is logged now, for this minute.
          fault.unlogged--;
          logNow(message, fault);
        }
      }
      if (causes.size === 0) subjects.delete(subject);
    }
  }
  return (message, error, fields = {}) => {
    const subjects = known.get(message) ?? new Map<string, Map<string, Fault>>();
    known.set(message, subjects);
    const wanted = { subject: JSON.stringify(fields), cause: String(error).slice(0, CAUSE_LENGTH_MAX) };
    if (!subjects.get(wanted.subject)?.has(wanted.cause)) forgetQuiet(message, subjects);
    const subject = keyWithin(subjects, wanted.subject, SUBJECTS_MAX);
    const causes = subjects.get(subject) ?? new Map<string, Fault>();
    subjects.set(subject, causes);
    const cause = keyWithin(causes, wanted.cause, CAUSES_MAX);
    const fault = causes.get(cause) ?? { loggedAt: Number.NEGATIVE_INFINITY, unlogged: 0, error, fields };
    causes.set(cause, fault);
    Object.assign(fault, { error, fields });
    if (now() - fault.loggedAt < REPEATS_EVERY_MS) fault.unlogged++;
    else logNow(message, fault);
  };
}

const keyWithin = (map: ReadonlyMap<string, unknown>, key: string, max: number): string =>
  map.has(key) || map.size < max ? key : OTHERS;

/** For faults of work that runs again by itself. */
export const logFault = createFaultLog(logError, () => performance.now());
