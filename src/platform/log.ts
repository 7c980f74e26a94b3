/** Structured log lines on stderr: one JSON object each. Fields carry ids, never secrets. */
type Fields = Readonly<Record<string, string | number | null>>;

function write(level: "error" | "warning" | "info", message: string, fields: Fields): void {
  const line = { time: new Date().toISOString(), level, message, ...fields };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

/** What is broken. */
export function logError(message: string, error: unknown, fields: Fields = {}): void {
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  write("error", message, { ...fields, error: cause });
}

/** What somebody should look at. */
export const logWarning = (message: string, fields: Fields = {}): void => write("warning", message, fields);

/** What is worth knowing afterwards. */
export const logInfo = (message: string, fields: Fields = {}): void => write("info", message, fields);

const REPEATS_EVERY_MS = 60_000;
/** Faults that are told apart. Beyond them those of a message are one. */
const FAULTS_MAX = 100;

/**
 * Logs faults that come again and again, such as a job's while the disk is full: the first of a message with its fields at
 * once, then one a minute at most, with `unlogged`, how many were left out before it.
 *
 * @param now milliseconds of a clock that never jumps
 */
export function createFaultLog(log: typeof logError, now: () => number): typeof logError {
  const known = new Map<string, { readonly loggedAt: number; unlogged: number }>();
  function forgetQuiet(time: number): void {
    for (const [key, { loggedAt }] of known) {
      if (time - loggedAt >= REPEATS_EVERY_MS) known.delete(key);
    }
  }
  return (message, error, fields = {}) => {
    const time = now();
    const full = `${message} ${JSON.stringify(fields)}`;
    if (!known.has(full) && known.size >= FAULTS_MAX) forgetQuiet(time);
    const key = known.has(full) || known.size < FAULTS_MAX ? full : message;
    const before = known.get(key);
    if (before && time - before.loggedAt < REPEATS_EVERY_MS) {
      before.unlogged++;
      return;
    }
    known.set(key, { loggedAt: time, unlogged: 0 });
    log(message, error, before && before.unlogged > 0 ? { ...fields, unlogged: before.unlogged } : fields);
  };
}

/** For whatever runs again by itself. */
export const logFault = createFaultLog(logError, () => performance.now());
