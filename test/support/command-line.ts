import { runCommandLine } from "../../src/cli/program.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { typeOf } from "../../src/core/errors.ts";
import { holdsItsDigest } from "../../src/platform/source-signature.ts";
import { replayCheck } from "../../src/services/checks/replay.ts";
import type { Context } from "../../src/services/context.ts";

export type Ran = { readonly code: number; readonly out: string; readonly err: string };

/** The command line in this process, on one ledger that stays open. */
export type CommandLine = {
  run(...args: readonly string[]): Promise<Ran>;
  /** Runs with `--json`: the one object of stdout. Throws where the command fails. */
  json(...args: readonly string[]): Promise<Record<string, unknown>>;
  /** How often a command opened the ledger, and how often it closed it. */
  readonly opened: { count: number; closed: number };
  /** The steps whose progress was shown, in order. */
  readonly steps: readonly string[];
};

export function createCommandLine(ctx: Context, overrides: Partial<CommandLineTools> = {}): CommandLine {
  const opened = { count: 0, closed: 0 };
  const steps: string[] = [];
  const run = async (...args: readonly string[]): Promise<Ran> => {
    const out: string[] = [];
    const err: string[] = [];
    const shown = new Set<symbol>();
    const printTo = (stream: string[], text: string): void => {
      if (shown.size > 0) throw new Error("printed over a progress that is still shown");
      stream.push(`${text}\n`);
    };
    const tools: CommandLineTools = {
      version: "1.2.3",
      open: async () => {
        opened.count += 1;
        return {
          ctx,
          close: async () => {
            opened.closed += 1;
          },
        };
      },
      serve: () => Promise.reject(new Error("no server here")),
      backUp: () => Promise.reject(new Error("no backup here")),
      restore: () => Promise.reject(new Error("no restore here")),
      copy: () => Promise.reject(new Error("no copy here")),
      runJob: () => Promise.reject(new Error("no jobs here")),
      demo: () => Promise.reject(new Error("no demo here")),
      replayCheck: (file) => replayCheck({ ...ctx, holdsItsDigest }, file),
      openApiDocument: async () => ({ openapi: "3.1.0", paths: {} }),
      serverAddress: () => ({ host: "127.0.0.1", port: 1 }),
      errorBody: ({ refused: code, message }) => ({
        error: { type: typeOf(code), code, message, doc_url: `/docs#${code}`, request_id: "req_1" },
      }),
      startProgress(step) {
        steps.push(step);
        const progress = Symbol(step);
        shown.add(progress);
        return { update: () => {}, stop: async () => void shown.delete(progress) };
      },
      print: (text) => printTo(out, text),
      printError: (text) => printTo(err, text),
      ...overrides,
    };
    const code = await runCommandLine(tools, args);
    return { code, out: out.join(""), err: err.join("") };
  };
  return {
    run,
    opened,
    steps,
    async json(...args) {
      const { code, out, err } = await run(...args, "--json");
      if (code !== 0) throw new Error(err);
      return JSON.parse(out);
    },
  };
}
