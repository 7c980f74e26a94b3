import { SQL } from "bun";
import packageJson from "../../package.json" with { type: "json" };
import { isRefusal } from "../core/errors.ts";
import { connectionOptions, type PostgresAddress } from "../store/postgres/address.ts";
import { auditPostgres } from "../store/postgres/audit.ts";
import { auditBesideServer } from "./audit-beside-server.ts";
import { auditCopiesIn } from "./store.ts";

/** The audit that a server makes of a ledger in a database, in a child: of a copy in this folder. */
export async function auditDatabaseBesideServer(
  address: PostgresAddress,
  folder: string,
  keys: string,
): Promise<readonly string[]> {
  const sql = new SQL({ ...connectionOptions(address, packageJson.version, 0), max: 1 });
  try {
    return await auditPostgres(sql, auditCopiesIn({ auditFolder: folder }), undefined, (copy) =>
      auditBesideServer(copy, keys),
    );
  } catch (error) {
    throw isRefusal(error) ? new Error(error.message) : error;
  } finally {
    await sql.close({ timeout: 0 });
  }
}
