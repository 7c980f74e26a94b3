import { SQL } from "bun";
import packageJson from "../../package.json" with { type: "json" };
import type { CopyFlags } from "../cli/tools.ts";
import { type Config, readConfig, readSecrets, type Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import type { StartProgress } from "../core/progress.ts";
import type { CopyResource } from "../services/admin/copy.ts";
import {
  connectionOptions,
  nameOfDatabase,
  type PostgresAddress,
  parsePostgresAddress,
} from "../store/postgres/address.ts";
import { type Copied, copyFromPostgres, copyToPostgres } from "../store/postgres/copy.ts";
import { problemAt } from "../store/postgres/server.ts";
import { refuseDatabase } from "./database.ts";
import { settingRefusal } from "./setting-refusal.ts";

/** One of both sides of a copy. */
type Side = { readonly folder: string } | { readonly address: PostgresAddress };

const { version } = packageJson;

/**
 * Copies a ledger between a data folder and a database. Where one side is not named, it is the data folder for a database, and the
 * database of HOLDFAST_DATABASE for a folder.
 */
export async function copyLedger(
  { data, from, to }: CopyFlags,
  startProgress: StartProgress,
): Promise<CopyResource | Refusal> {
  const config = readConfig({ DATA: data });
  if (isRefusal(config)) return config;
  const secrets = readSecrets();
  if (isRefusal(secrets)) return secrets;
  const source = sideOf("--from", { named: from, other: to }, config, secrets);
  if (isRefusal(source)) return source;
  const target = sideOf("--to", { named: to, other: from }, config, secrets);
  if (isRefusal(target)) return target;
  const options = { version, startProgress };
  const copied = await copyBetween(source, target, options).catch(settingRefusal);
  if (isRefusal(copied)) return copied;
  const { instanceId, rows, replaced } = copied;
  const named = { from: nameOf(source), to: nameOf(target) };
  return { object: "copy", ...named, instance_id: instanceId, rows, replaced, audit: "ok" };
}

function copyBetween(
  source: Side,
  target: Side,
  options: Parameters<typeof copyToPostgres>[2],
): Promise<Copied | Refusal> {
  if ("folder" in source && "address" in target)
    return onDatabase("--to", target.address, (sql) => copyToPostgres(source.folder, sql, options));
  if ("address" in source && "folder" in target)
    return onDatabase("--from", source.address, (sql) => copyFromPostgres(sql, target.folder, options));
  return Promise.resolve(
    refuseField("--to", "one side must be a data folder, and the other a database, as postgres://…"),
  );
}

const isAddress = (text: string): boolean => /^postgres(ql)?:/.test(text);

function sideOf(
  option: string,
  { named, other }: { readonly named: string | undefined; readonly other: string | undefined },
  config: Config,
  secrets: Secrets,
): Side | Refusal {
  if (named === undefined && other === undefined)
    return refuseField(option, "is missing: give it, or --to, or both");
  if (named === undefined && isAddress(other ?? "")) return { folder: config.data };
  if (named !== undefined && !isAddress(named)) return { folder: named };
  const address = named === undefined ? secrets.database : parsePostgresAddress(named);
  if (address === null) return refuseField(option, "is missing: give it, or set HOLDFAST_DATABASE");
  if ("problem" in address) return refuseField(option, address.problem);
  return refuseDatabase(config, { ...secrets, database: address }) ?? { address };
}

const nameOf = (side: Side): string => ("folder" in side ? side.folder : nameOfDatabase(side.address));

async function onDatabase(
  option: string,
  address: PostgresAddress,
  work: (sql: SQL) => Promise<Copied | Refusal>,
): Promise<Copied | Refusal> {
  const problem = await problemAt(address, version, Date.now);
  if (problem !== null) return refuseField(option, problem);
  const sql = new SQL({ ...connectionOptions(address, version, 0), max: 1 });
  try {
    return await work(sql);
  } finally {
    await sql.close({ timeout: 0 });
  }
}
