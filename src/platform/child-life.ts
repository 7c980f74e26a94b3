const SIGNALS_OF_PARENT = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * For a child that its parent talks to: ends when the parent goes, and not before. Ctrl-C and systemd signal the whole process
 * group, while the server still drains: what the child is at would be lost. The parent ends a child by SIGKILL.
 */
export function liveAsLongAsParent(): void {
  for (const signal of SIGNALS_OF_PARENT) process.on(signal, () => {});
  // Without a parent nothing is left to do; a closed channel would otherwise spin.
  process.on("disconnect", () => process.exit(0));
  if (!process.connected) process.exit(0); // it went before anybody listened
}
