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
