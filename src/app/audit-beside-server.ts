import { auditFolder } from "../store/sqlite/audit.ts";

/** About two seconds of work. A longer file is checked by `holdfast audit`; and of each backup, the copy. */
const FILE_BYTES_MAX = 256 * 1_024 * 1_024;

/** The server's own audit, each hour. */
export const auditBesideServer = async (dataFolder: string): Promise<readonly string[]> =>
  auditFolder(dataFolder, FILE_BYTES_MAX);
