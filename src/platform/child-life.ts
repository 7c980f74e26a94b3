const SIGNALS_OF_PARENT = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Called in a child process. It makes the child end with its parent, and ignore signals until then. Ctrl-C
 * and systemd signal the whole process group, but the server still needs its children while it finishes its
 * requests. The parent ends a child by SIGKILL.
 */
export function liveAsLongAsParent(): void {
  for (const signal of SIGNALS_OF_PARENT) process.on(signal, () => {});
  // Without a parent there is nothing left to do, and a closed channel would keep the processor busy.
  process.on("disconnect", () => process.exit(0));
  // The parent may have ended before this listener existed.
  if (!process.connected) process.exit(0);
}
