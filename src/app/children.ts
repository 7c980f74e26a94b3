/** The hidden commands. A server runs each in a process of its own, so that requests do not wait for its work. */
export const EVALUATOR_ARGUMENT = "evaluator-child";
export const AUDIT_ARGUMENT = "audit-child";
export const DATABASE_AUDIT_ARGUMENT = "database-audit-child";
export const WAL_CHECKPOINT_ARGUMENT = "wal-checkpoint-child";

/** How to start this executable again. Bun keeps the modules of a compiled binary under `/$bunfs/`. */
export const SELF: readonly string[] = import.meta.dir.startsWith("/$bunfs/")
  ? [process.execPath]
  : [process.execPath, `${import.meta.dir}/../main.ts`];
