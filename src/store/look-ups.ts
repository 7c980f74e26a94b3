import type { Agent } from "../core/agent.ts";
import { transactionKey } from "../core/chain-transaction.ts";
import { transferKey } from "../core/chain-transfer.ts";
import type { Correction } from "../core/correction.ts";
import type { Deposit } from "../core/deposit.ts";
import { senderKey } from "../core/deposit-sender.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Payout } from "../core/payout.ts";
import type { Policy } from "../core/policy.ts";
import { type PayoutTransaction, railStateKey } from "../core/rail.ts";
import { ROLES, roleIsAtLeast } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import { heldBetween, type WindowUse, type WindowUses } from "../core/session-limits.ts";
import { DAY_MS, HOUR_MS } from "../core/time.ts";
import { watchKey } from "../core/treasury-watch.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant } from "../core/warrant.ts";
import { cosignatureKey } from "../core/witness.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import { type NeedName, type NeedTable, type NoticeReader, READERS_MAX } from "./needs.ts";
import { balanceRowKey, type IdempotencyKey, payeeRowKey } from "./rows.ts";
import type { Scope } from "./scope.ts";
import type { LoadedKind, LoadedRows, View } from "./view.ts";

type LookUps = {
  readonly [Name in NeedName]: (
    view: View,
    scope: Scope,
    ask: Exclude<NeedTable[Name]["ask"], null>,
    /** The row that this need follows from; null where it follows from none. */
    source: unknown,
  ) => NeedTable[Name]["found"] | undefined;
};

type OfOrganisation = { readonly organisationId: string };
type OfMode = OfOrganisation & { readonly mode: Scope["mode"] };

/** The row; null where it belongs to another organisation. */
const inOrganisation = <Row extends OfOrganisation>(
  row: Row | null | undefined,
  scope: Scope,
): Row | null | undefined => (row && row.organisationId !== scope.organisationId ? null : row);

const inScope = <Row extends OfMode>(row: Row | null | undefined, scope: Scope): Row | null | undefined =>
  row && (row.organisationId !== scope.organisationId || row.mode !== scope.mode) ? null : row;

/** The row for a key that an index gave. */
const rowOf = <Kind extends LoadedKind>(
  view: View,
  kind: Kind,
  key: string | null | undefined,
): LoadedRows[Kind] | null | undefined => (key == null ? (key as null | undefined) : view.row(kind, key));

/** The rows for the keys that an index gave; undefined while one of them is missing. */
function rowsOf<Kind extends LoadedKind>(
  view: View,
  kind: Kind,
  keys: readonly string[] | undefined,
): readonly LoadedRows[Kind][] | undefined {
  if (keys === undefined) return undefined;
  const rows = keys.map((key) => view.row(kind, key));
  return rows.includes(undefined) ? undefined : rows.filter((row) => row != null);
}

/** The rows that are there, and null for each that is not; undefined while one of them is missing. */
const allOf = <Row>(rows: readonly (Row | null | undefined)[]): readonly (Row | null)[] | undefined =>
  rows.includes(undefined) ? undefined : (rows as readonly (Row | null)[]);

/** Hides people who were removed: they can neither act nor be changed. */
const present = (user: User | null | undefined): User | null | undefined =>
  user && user.removedAt !== null ? null : user;

const agentIn = (view: View, scope: Scope, id: string) => inScope(view.row("agent", id), scope);
const keyIn = (view: View, scope: Scope, id: string) => inScope(view.row("apiKey", id), scope);
const policyIn = (view: View, scope: Scope, id: string | null | undefined) =>
  inOrganisation(rowOf(view, "policy", id), scope);
const userIn = (view: View, scope: Scope, id: string) => present(inOrganisation(view.row("user", id), scope));
const schemaIn = (view: View, scope: Scope, name: string) =>
  rowOf(view, "schema", view.index("schemaNamed", scope.organisationId, name));
const newestPolicyOf = (view: View, scope: Scope, agentId: string | null) =>
  policyIn(view, scope, view.index("newestPolicy", scope.organisationId, agentId));

/**
 * The use of a session's windows. A hold counts at the batch's steady time; after a restart with a clock that
 * is behind, at the time of the session's last hold.
 */
function windowUses(view: View, session: SpendSession, amount: bigint): WindowUses | undefined {
  const at = Math.max(view.steadyAt, session.heldAt ?? 0);
  const hourly = windowUse(view, session, amount, at, HOUR_MS, session.hourlyMax);
  const daily = windowUse(view, session, amount, at, DAY_MS, session.dailyMax);
  return hourly === undefined || daily === undefined ? undefined : { at, hourly, daily };
}

function windowUse(
  view: View,
  { id, amountHeld }: SpendSession,
  amount: bigint,
  at: number,
  windowMs: number,
  max: bigint | null,
): WindowUse | null | undefined {
  if (max === null) return null;
  const begin = at - windowMs;
  const before = view.index("heldUntil", id, begin);
  if (before === undefined) return undefined;
  const used = heldBetween(before, amountHeld);
  const excess = used + amount - max;
  if (excess <= 0n || amount > max) return { used, fitsAt: null };
  // It fits once as much as is too much has left the window.
  const leaving = view.index("heldSince", id, begin, at, String(before), String(excess));
  return leaving === undefined ? undefined : { used, fitsAt: leaving + windowMs };
}

/** How each need is looked up. */
export const LOOK_UPS: LookUps = {
  callerKey: keyIn,
  callerAgent: agentIn,
  callerUser: userIn,
  callerSession: (view, _, hash) => view.row("authSession", hash),
  callerChat: (view, scope, userId) => inOrganisation(view.row("messagingAccount", userId), scope),

  idempotencyKey: (view, scope, key) =>
    view.row("idempotencyKey", `${scope.organisationId} ${scope.mode} ${key}`),
  replayedWarrant(view, scope, _, source) {
    const { outcome } = source as IdempotencyKey;
    return outcome?.kind === "warrant" ? inScope(view.row("warrant", outcome.warrantId), scope) : null;
  },
  replayedStep(view, _, __, source) {
    const { outcome } = source as IdempotencyKey;
    return outcome?.kind === "warrant"
      ? view.row("traceStep", traceStepKey(outcome.warrantId, outcome.version - 1))
      : null;
  },
  heldKey: (view, scope, holder) =>
    inScope(rowOf(view, "idempotencyKey", view.index("keyHeldBy", holder)), scope),

  warrant: (view, scope, ask, source) =>
    inScope(
      view.row(
        "warrant",
        typeof ask === "string" ? ask : ((source as Escalation | Purchase).warrantId ?? ""),
      ),
      scope,
    ),
  warrantAgent: (view, scope, _, source) => {
    const { agentId } = source as Warrant;
    return agentId === null ? null : agentIn(view, scope, agentId);
  },
  warrantOpener: (view, scope, _, source) => {
    const { openedBy } = source as Warrant;
    return openedBy?.kind === "agent" ? agentIn(view, scope, openedBy.id) : null;
  },
  warrantSession: (view, _, __, source) => rowOf(view, "spendSession", (source as Warrant).sessionId),
  warrantPolicy: (view, scope, _, source) => policyIn(view, scope, (source as Warrant).policyId),
  warrantPurchase: (view, _, __, source) =>
    rowOf(view, "purchase", view.index("purchaseOfWarrant", (source as Warrant).id)),
  warrantEscalation: (view, _, __, source) =>
    rowOf(view, "escalation", view.index("unresolvedEscalation", (source as Warrant).id)),
  escalationOrWarrant: (view, scope, id) =>
    inScope(rowOf(view, "escalation", view.index("escalationOrWarrant", id)), scope),
  webhooks: (view, { organisationId, mode }) =>
    rowsOf(view, "webhook", view.index("enabledWebhooks", organisationId, mode)),
  purchase: (view, scope, id) => inScope(view.row("purchase", id), scope),

  agent: agentIn,
  agentSession: (view, _, __, source) =>
    rowOf(view, "spendSession", view.index("newestSession", (source as Agent).id)),
  sessionWindows: (view, _, { amount }, source) => windowUses(view, source as SpendSession, amount),
  agentPolicy: (view, scope, _, source) => newestPolicyOf(view, scope, (source as Agent).id),
  callerAgentPolicy: (view, scope, _, source) => newestPolicyOf(view, scope, (source as Agent).id),
  organisationPolicy: (view, scope) => newestPolicyOf(view, scope, null),
  policy: policyIn,
  newestOfPolicy: (view, scope, _, source) => {
    const { agentId, name } = source as Policy;
    return policyIn(view, scope, view.index("newestPolicyNamed", scope.organisationId, agentId, name));
  },
  verifier: (view, scope, id) => inOrganisation(view.row("verifier", id), scope),
  verifierSchema: (view, scope, _, source) => {
    const { type, config } = source as SavedVerifier;
    return type === "json.schema" ? schemaIn(view, scope, String(config.schema)) : null;
  },
  schemas: (view, scope, names) => {
    const found = names.map((name) => schemaIn(view, scope, name));
    return found.includes(undefined) ? undefined : found.filter((schema) => schema != null);
  },
  balance: (view, { organisationId, mode }, ask, source) =>
    view.row(
      "balance",
      balanceRowKey(organisationId, mode, typeof ask === "string" ? ask : (source as Deposit).asset),
    ),
  hasPasskey: (view, { organisationId }) => view.index("countingPasskey", organisationId),
  contentBytes: (view, { organisationId, mode }, of) => view.index("contentBytes", organisationId, mode, of),
  oldestFree: (view, { organisationId, mode }) =>
    rowsOf(view, "purchase", view.index("oldestFree", organisationId, mode)),
  sourceKeys: (view, { organisationId }) =>
    rowsOf(view, "sourceKey", view.index("sourceKeysOf", organisationId)),
  capsule: (view, scope, id) => inScope(view.row("capsule", id), scope),
  oldestCapsules(view, { organisationId, mode }, limit) {
    const oldest = view.index("oldestCapsules", organisationId, mode);
    const found = rowsOf(view, "capsule", oldest?.ids.slice(0, limit));
    // Where a command had to make room, those after it must too: theirs are loaded together.
    if (found === undefined && oldest?.isShortened)
      rowsOf(view, "capsule", oldest.ids.slice(limit, limit + view.together));
    return found;
  },
  newestCapsule: (view, { organisationId, mode }) =>
    rowOf(view, "capsule", view.index("newestCapsule", organisationId, mode)),
  openAuthorizations: (view, _, { payer, chainId, contract, since }) =>
    view.index("openAuthorizations", payer, chainId, contract, since),

  user: userIn,
  hasOrganisation: (view) => view.index("anyOrganisation"),
  userByEmail: (view, _, email) => rowOf(view, "user", view.index("userByEmail", email)),
  hasOtherOwner: (view, { organisationId }, userId) => view.index("otherOwner", organisationId, userId),
  hasSecondPerson: (view, { organisationId }, userId) => view.index("secondPerson", organisationId, userId),
  passkey: (view, _, id) => view.row("passkey", id),
  passkeys: (view, _, userId) => rowsOf(view, "passkey", view.index("passkeysOf", userId)),
  passkeyApproval: (view, _, hash) => view.row("passkeyApproval", hash),
  userSessions: (view, _, userId) => rowsOf(view, "authSession", view.index("sessionsOf", userId)),
  passwordReset: (view, _, hash) => view.row("passwordReset", hash),
  unusedPasswordResets: (view, _, userId) =>
    rowsOf(view, "passwordReset", view.index("unusedResetsOf", userId)),

  apiKey: keyIn,
  spendSession: (view, _, id) => view.row("spendSession", id),
  policyNamed: (view, scope, { agentId, name }) =>
    policyIn(view, scope, view.index("newestPolicyNamed", scope.organisationId, agentId, name)),
  depositReferenced: (view, { organisationId, mode }, { asset, reference }) =>
    rowOf(view, "deposit", view.index("depositReferenced", organisationId, mode, asset, reference)),
  deposit: (view, scope, ask, source) =>
    inScope(view.row("deposit", typeof ask === "string" ? ask : (source as Correction).depositId), scope),
  correction: (view, scope, id) => inScope(view.row("correction", id), scope),
  depositCorrection: (view, scope, _, source) =>
    inScope(rowOf(view, "correction", view.index("correctionOf", (source as Deposit).id)), scope),
  payeeBalances: (view, { organisationId, mode }, payees) =>
    allOf(
      payees.map(({ asset, payee }) =>
        view.row("payeeBalance", payeeRowKey(organisationId, mode, asset, payee)),
      ),
    ),
  payout: (view, scope, id) => inScope(view.row("payout", id), scope),
  newestPayout: (view, { organisationId, mode }, { asset, payee }) =>
    rowOf(view, "payout", view.index("newestPayout", organisationId, mode, asset, payee)),
  payoutTransaction: (view, scope, _, source) =>
    inScope(
      rowOf(view, "payoutTransaction", view.index("transactionOfPayout", (source as Payout).id)),
      scope,
    ),
  payoutChainTransaction: (view, _, __, source) =>
    view.row("chainTransaction", transactionKey(source as PayoutTransaction)),
  payoutWaits: (view, { organisationId, mode }, payees) =>
    allOf(
      payees.map(({ asset, payee }) =>
        view.row("payoutWait", payeeRowKey(organisationId, mode, asset, payee)),
      ),
    ),
  sentInDay: (view, { organisationId, mode }, asset) =>
    view.index("sentSince", organisationId, mode, asset, view.recordedAt - DAY_MS),
  railStates: (view, _, tokens) => allOf(tokens.map((of) => view.row("railState", railStateKey(of)))),
  webhook: (view, scope, id) => inScope(view.row("webhook", id), scope),
  delivery: (view, scope, id) => inScope(view.row("delivery", id), scope),

  notice: (view, scope, id) => inScope(view.row("notice", id), scope),
  escalationPlan: (view, _, __, source) => view.row("plannedNotice", (source as Escalation).id),
  plannedNotices: (view, scope, ids) =>
    rowsOf(view, "plannedNotice", ids)?.filter((plan) => inScope(plan, scope) !== null),
  noticeSettings: (view, scope, userId) => inOrganisation(view.row("noticeSettings", userId), scope),
  pushSubscriptions: (view, _, userId) =>
    rowsOf(view, "pushSubscription", view.index("pushSubscriptionsOf", userId)),
  pushSubscriptionAt: (view, _, endpoint) =>
    rowOf(view, "pushSubscription", view.index("pushSubscriptionAt", endpoint)),
  readers(view, { organisationId }, role) {
    const roles = ROLES.filter((one) => roleIsAtLeast(one, role));
    const users = rowsOf(
      view,
      "user",
      view.index("peopleOf", organisationId, JSON.stringify(roles), READERS_MAX),
    );
    const readers = users?.map((user) => ({
      user,
      settings: view.row("noticeSettings", user.id),
      chat: view.row("messagingAccount", user.id),
      devices: view.index("pushSubscriptionsOf", user.id)?.length,
    }));
    return readers?.some((reader) => Object.values(reader).includes(undefined))
      ? undefined
      : (readers as NoticeReader[]);
  },
  messagingAccount: (view, scope, userId) => inOrganisation(view.row("messagingAccount", userId), scope),
  messagingAccountOfChat: (view, _, chatId) =>
    rowOf(view, "messagingAccount", view.index("accountOfChat", chatId)),
  messagingCode: (view, scope, userId) => inOrganisation(view.row("messagingCode", userId), scope),
  newestNotice: (view, { organisationId }, subject) => view.index("newestNotice", organisationId, subject),

  witnessedLog: (view, _, origin) => view.row("witnessedLog", origin),
  cosignature: (view, _, of) => view.row("cosignature", cosignatureKey(of)),

  chainTransaction: (view, _, of) => view.row("chainTransaction", transactionKey(of)),
  newestTransaction: (view, _, { chainId, wallet }) =>
    rowOf(view, "chainTransaction", view.index("newestTransaction", chainId, wallet)),
  treasuryWatch: (view, _, of) => view.row("treasuryWatch", watchKey(of)),
  chainTransfer: (view, _, of) => view.row("chainTransfer", transferKey(of)),
  chainTransfers: (view, _, all) => rowsOf(view, "chainTransfer", all.map(transferKey)),
  depositSender: (view, _, of) => view.row("depositSender", senderKey(of)),
};

/**
 * What a need finds where null is asked for, or where the row that it follows from does not exist. Null,
 * unless it is listed here.
 */
export const NOTHING: { readonly [Name in NeedName]?: NeedTable[Name]["found"] } = {
  oldestFree: [],
  openAuthorizations: 0n,
  passkeys: [],
  sessionWindows: { at: 0, hourly: null, daily: null },
};

/** A trace entry's key: its warrant and its sequence. */
const traceStepKey = (warrantId: string, sequence: number): string => `${warrantId} ${sequence}`;
