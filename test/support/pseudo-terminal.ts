type Options = {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  /** Called each time that something is written, with everything that was written so far. */
  readonly onWritten?: (written: string) => void;
};

/**
 * Runs a process on a terminal, as a user would. Answers what it wrote there, stdout and stderr together. `<clear>` stands for
 * the sequence that clears the rest of a line.
 */
export async function onTerminal(
  command: readonly string[],
  { cwd, env, columns = 100, onWritten }: Options = {},
): Promise<{ readonly code: number; readonly written: string }> {
  const decoder = new TextDecoder();
  let written = "";
  const ended = Promise.withResolvers<void>();
  const child = Bun.spawn([...command], {
    ...(cwd !== undefined && { cwd }),
    env: { TERM: "xterm-256color", ...env },
    terminal: {
      cols: columns,
      rows: 30,
      data(_, bytes) {
        written += decoder.decode(bytes, { stream: true }).replaceAll("\u001b[K", "<clear>");
        onWritten?.(written);
      },
      exit: () => ended.resolve(),
    },
  });
  const code = await child.exited;
  await ended.promise;
  return { code, written };
}
