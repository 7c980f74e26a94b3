import { privateKeyToAccount } from "viem/accounts";
import type { Credentials, Json } from "../../support/client.ts";
import { type Installation, install, PROGRAM, type RunningServer } from "../../support/executable.ts";
import { type Chain, NETWORK_V2, startChain } from "../chain.ts";
import { deployFaultyToken, type FaultyToken } from "./faulty-token.ts";

const KEY = `0x${"42".repeat(32)}` as const;
export const TREASURY = privateKeyToAccount(KEY).address;
export const CONFIRMATIONS = 3;
export const ADMIN = { email: "ada@example.com", password: "velvet harbour ginger notion" } as const;
/** The most of one payout without a person. */
export const PAYOUT_MAX = 2_000_000n;
export const WALK_MS = 240_000;
const ETHER = 10n ** 18n;

/** A program that serves an organisation whose sandbox has a treasury without gas, on a chain; an agent's key; and the operator's commands. */
export type InstalledTreasury = {
  readonly chain: Chain;
  readonly token: FaultyToken;
  readonly holdfast: Installation;
  readonly server: RunningServer;
  readonly as: Credentials;
  /** The options for the organisation and the mode. */
  readonly account: readonly string[];
  /** What a command lists of the organisation. */
  list(...args: readonly string[]): Promise<Json[]>;
  /** Its balance of the token's asset. */
  balance(): Promise<Json>;
  giveGas(): Promise<void>;
  /** Whether the chain is watched: what came before that is no deposit. */
  isWatched(): Promise<boolean>;
  close(): Promise<void>;
};

/** `EXECUTABLE` names the program; without it, the source is run. */
export async function installTreasury(): Promise<InstalledTreasury> {
  const chain = await startChain();
  const token = await deployFaultyToken(chain);
  const holdfast = install(
    {
      ...{ PORT: "0", ALLOW_NETWORKS: "127.0.0.0/8", EVM_RPC: `${NETWORK_V2}=${chain.url}` },
      TREASURY_SANDBOX: `${NETWORK_V2}/${token.address}=USDC:${PAYOUT_MAX}:4000000`,
      TREASURY_SANDBOX_KEY: KEY,
      ...{ TREASURY_CONFIRMATIONS: `${CONFIRMATIONS}`, PAYOUT_MINUTES: "1", CHECKPOINT_MS: "100" },
    },
    null,
    PROGRAM,
  );
  const server = await holdfast.serve();
  const created = await holdfast.json(
    ...["organisations", "create", "--name", "Tower", "--owner-email", "owner@example.com"],
    ...["--owner-password", "copper lantern walnut drift"],
  );
  const of = ["--organisation", created.organisation.id];
  await holdfast.run(
    "users",
    "create",
    ...of,
    ...["--email", ADMIN.email, "--password", ADMIN.password, "--role", "admin"],
  );
  const account = [...of, "--mode", "sandbox"];
  const agent = await holdfast.json("agents", "create", ...account, "--name", "buyer");
  const key = await holdfast.json("keys", "create", "--agent", agent.id);
  return {
    ...{ chain, token, holdfast, server, account },
    as: { Authorization: `Bearer ${key.secret}` },
    list: async (...args) => (await holdfast.json(...args, ...account)).data,
    async balance() {
      const { balances } = await holdfast.json("balances", "show", ...account);
      return balances.find(({ asset }: Json) => asset === "USDC");
    },
    async giveGas() {
      await chain.ask("hardhat_setBalance", [TREASURY, `0x${ETHER.toString(16)}`]);
    },
    isWatched: async () => (await holdfast.json("treasuries", "list")).data[0].block !== null,
    async close() {
      await holdfast.remove();
      await chain.close();
    },
  };
}

/** A warrant of so much for a payee, which a deliverable with status 200 releases. */
export const promiseOf = (payee: string, amount: bigint) => ({
  ...{ amount: `${amount}`, payee, deadline: new Date(Date.now() + 3_600_000).toISOString() },
  spec: { clauses: [{ kind: "http.status", equals: 200 }] },
});
