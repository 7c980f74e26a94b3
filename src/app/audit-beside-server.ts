import { auditFolder } from "../store/sqlite/audit.ts";

/**
 * The longest file that the server checks itself, which takes about two seconds. `holdfast audit` checks
 * longer ones, and every backup checks its copy.
 */
const FILE_BYTES_MAX = 256 * 1_024 * 1_024;

/** The server's own audit, each hour. */
export const auditBesideServer = async (dataFolder: string): Promise<readonly string[]> =>
  auditFolder(dataFolder, FILE_BYTES_MAX);
