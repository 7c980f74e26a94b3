import packageJson from "../package.json" with { type: "json" };
import {
  AUDIT_ARGUMENT,
  DATABASE_AUDIT_ARGUMENT,
  EVALUATOR_ARGUMENT,
  WAL_CHECKPOINT_ARGUMENT,
} from "./app/children.ts";

// Modules are imported where they are needed. Several children run beside a server, and each would have to load all of them.
const [command, folder = "", keys = ""] = process.argv.slice(2);
switch (command) {
  case EVALUATOR_ARGUMENT: {
    const { runEvaluatorChild } = await import("./platform/evaluator-child.ts");
    await runEvaluatorChild();
    break;
  }
  case AUDIT_ARGUMENT: {
    const { runAuditChild } = await import("./platform/audit-child.ts");
    const { auditBesideServer } = await import("./app/audit-beside-server.ts");
    await runAuditChild(() => auditBesideServer(folder, keys));
    break;
  }
  case DATABASE_AUDIT_ARGUMENT: {
    const { readInput, runAuditChild } = await import("./platform/audit-child.ts");
    const { auditDatabaseBesideServer } = await import("./app/audit-beside-database.ts");
    const address = JSON.parse(readInput());
    await runAuditChild(() => auditDatabaseBesideServer(address, folder, keys));
    break;
  }
  case WAL_CHECKPOINT_ARGUMENT: {
    const { runWalCheckpointChild } = await import("./platform/wal-checkpoint-child.ts");
    const { createWalCheckpoint } = await import("./store/sqlite/wal-checkpoint.ts");
    await runWalCheckpointChild(createWalCheckpoint(folder));
    break;
  }
  case "--version":
  case "-V":
    console.log(packageJson.version);
    break;
  default: {
    const { runProgram } = await import("./app/command-line.ts");
    process.exitCode = await runProgram(packageJson.version, process.argv.slice(2));
  }
}
