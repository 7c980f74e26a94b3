/** Structured log lines on stderr: one JSON object each. Fields carry ids, never secrets. */
export function logError(
  message: string,
  error: unknown,
  fields: Readonly<Record<string, string>> = {},
): void {
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const line = { time: new Date().toISOString(), level: "error", message, ...fields, error: cause };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
