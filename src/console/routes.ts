import { ACCESS } from "../core/roles.ts";
import { createBackTests } from "../services/console/back-test.ts";
import { createHistory } from "../services/console/history.ts";
import type { InstanceState } from "./instance-state.ts";
import { ASSETS, PUSH_WORKER } from "./own-files.ts";
import {
  sendOwnName,
  sendOwnPassword,
  sendOwnSignOut,
  sendPasskeyRemoval,
  showAccount,
  showPasskeyRemoval,
} from "./pages/account.tsx";
import { showAgent } from "./pages/agents/agent.tsx";
import { sendEdit, sendNewAgent, showEdit, showNewAgent } from "./pages/agents/form.tsx";
import {
  sendNewKey,
  sendRevoke,
  sendRotate,
  showKeys,
  showRevoke,
  showRotate,
} from "./pages/agents/keys.tsx";
import { showAgents } from "./pages/agents/list.tsx";
import { sendNewSession, showNewSession } from "./pages/agents/new-session.tsx";
import { sendEndSession, showEndSession, showSession, showSessions } from "./pages/agents/sessions.tsx";
import { sendStatusChange, showStatusChange } from "./pages/agents/status.tsx";
import { showAuditLog } from "./pages/audit-log.tsx";
import { showBench, tryBench } from "./pages/bench.tsx";
import { sendChatCode, sendUnlink, showChat } from "./pages/chat.tsx";
import { showComponents } from "./pages/components.tsx";
import {
  sendCorrecting,
  sendDeciding,
  showCorrecting,
  showCorrections,
  showDeciding,
} from "./pages/corrections.tsx";
import { sendDecision, showEscalation, showInbox } from "./pages/escalations.tsx";
import { showKillSwitch } from "./pages/kill-switch.tsx";
import { sendDeposit, showDepositForm, showMoney } from "./pages/money.tsx";
import { sendDevice, sendDeviceRemoval, sendNotices, sendTest, showNotices } from "./pages/notices.tsx";
import { sendOpening, showOpening } from "./pages/open-warrant.tsx";
import { showOverview } from "./pages/overview.tsx";
import { OWED_PASSKEY, showOwedPasskey } from "./pages/owed-passkey.tsx";
import { sendSubmitting, showPayees, showSubmitting } from "./pages/payees.tsx";
import { sendEnding, showEnding, showPayouts } from "./pages/payouts.tsx";
import { sendInvitation, showInvitation, showPeople } from "./pages/people.tsx";
import {
  sendRemoval,
  sendResetLink,
  sendRole,
  sendSignOutOf,
  showPerson,
  showRemoval,
} from "./pages/person.tsx";
import { showPolicies, showPolicy } from "./pages/policies.tsx";
import { sendPolicy, showNewPolicy, tryPolicy } from "./pages/policy-editor.tsx";
import { sendSaying, showSaying } from "./pages/purchase-verbs.tsx";
import { showPurchasePage, showPurchases } from "./pages/purchases.tsx";
import { sendPasswordReset, showPasswordReset } from "./pages/reset-password.tsx";
import { sendSchema, showNewSchema, showSchema, showSchemas } from "./pages/schemas.tsx";
import { sendEnter, sendSetUp, showEnter, showSetUp } from "./pages/set-up.tsx";
import {
  sendKillSwitch,
  sendMessagingDecisions,
  sendReceiptSpecs,
  sendSecondFactor,
  sendThreshold,
  showSettings,
} from "./pages/settings.tsx";
import { sendSettlement, showSettlement } from "./pages/settle.tsx";
import { sendMode, sendSignIn, sendSignOut, sendTheme, showSignIn } from "./pages/sign-in.tsx";
import { openProof, showSolvency } from "./pages/solvency.tsx";
import { createStatementFiles, showStatements } from "./pages/statements.tsx";
import { sendVerifier, showNewVerifier, showVerifier, showVerifiers } from "./pages/verifiers.tsx";
import { sendVerify, showWarrant } from "./pages/warrant.tsx";
import { showWarrants } from "./pages/warrants.tsx";
import { sendRedelivery, showDeliveries, showDelivery } from "./pages/webhooks/deliveries.tsx";
import {
  sendDisabling,
  sendExampleEvent,
  sendRecovery,
  showDisabling,
  showEndpoint,
} from "./pages/webhooks/endpoint.tsx";
import { sendNewEndpoint, showEndpoints, showNewEndpoint } from "./pages/webhooks/endpoints.tsx";
import { sendFirstSteps, showWelcome } from "./pages/welcome.tsx";
import { download, file, form, open, page, type Route, stream, trial, worker } from "./route.ts";

/**
 * Every page and form of the console, with who may see or send it. A role is checked before the page's own code runs, and again
 * in the commit of what it does.
 *
 * @param isDevelopment whether it runs from the source: then there is a page with all components
 * @param instance null where no page shows the instance's state
 */
export const consoleRoutes = (
  isDevelopment: boolean,
  instance: InstanceState | null = null,
): readonly Route[] => [
  open("GET", "/", async () => ({ to: "/console" })),
  open("GET", "/console/sign-in", showSignIn),
  open("POST", "/console/sign-in", sendSignIn),
  open("GET", "/console/set-up", showSetUp),
  open("POST", "/console/set-up", sendSetUp),
  open("GET", "/console/enter", showEnter),
  open("POST", "/console/enter", sendEnter),
  open("GET", OWED_PASSKEY, showOwedPasskey),
  open("GET", "/reset-password", showPasswordReset),
  open("POST", "/reset-password", sendPasswordReset),
  // Where it was before it came into the console. Refusals and mails name it.
  open("GET", "/account", async () => ({ to: "/console/account" })),
  open("POST", "/console/theme", sendTheme),
  form("/console/sign-out", ACCESS.endOwnSignIn, sendSignOut),
  form("/console/mode", ACCESS.readConsole, sendMode),

  // A page begins where it was read; a browser whose stream broke off goes on after what it has heard.
  stream("/console/events", ACCESS.readConsole, ({ ctx, signedIn, search, lastEventId }) =>
    ctx.live.open(signedIn.caller, lastEventId ?? search.get("after")),
  ),

  page("/console", ACCESS.readConsole, showOverview(createHistory())),

  page("/console/welcome", ACCESS.administer, showWelcome),
  form("/console/welcome", ACCESS.administer, sendFirstSteps),

  page("/console/warrants", ACCESS.readWarrants, showWarrants),
  page("/console/warrants/new", ACCESS.openWarrant, showOpening),
  form("/console/warrants/new", ACCESS.openWarrant, sendOpening),
  page("/console/warrants/:id", ACCESS.readWarrants, showWarrant),
  form("/console/warrants/:id/verify", ACCESS.verifyWarrant, sendVerify),
  page("/console/warrants/:id/settle/:decision", ACCESS.settleWarrant, showSettlement),
  form("/console/warrants/:id/settle/:decision", ACCESS.settleWarrant, sendSettlement),

  page("/console/escalations", ACCESS.readConsole, showInbox),
  page("/console/escalations/:id", ACCESS.readConsole, showEscalation),
  form("/console/escalations/:id", ACCESS.resolveEscalation, sendDecision),

  page("/console/settings/notices", ACCESS.keepOwnSignIn, showNotices),
  form("/console/settings/notices", ACCESS.keepOwnSignIn, sendNotices),
  page("/console/settings/notices/chat", ACCESS.keepOwnSignIn, showChat),
  form("/console/settings/notices/chat", ACCESS.keepOwnSignIn, sendChatCode),
  form("/console/settings/notices/chat/unlink", ACCESS.keepOwnSignIn, sendUnlink),
  form("/console/settings/notices/test", ACCESS.keepOwnSignIn, sendTest),
  form("/console/settings/notices/devices", ACCESS.keepOwnSignIn, sendDevice),
  form("/console/settings/notices/devices/remove", ACCESS.keepOwnSignIn, sendDeviceRemoval),
  page("/console/policies", ACCESS.readConsole, showPolicies),
  page("/console/policies/new", ACCESS.administer, showNewPolicy),
  form("/console/policies", ACCESS.administer, sendPolicy),
  trial("/console/policies/try", ACCESS.administer, tryPolicy(createBackTests())),
  page("/console/policies/:id", ACCESS.readConsole, showPolicy),

  page("/console/verifiers", ACCESS.readConsole, showVerifiers),
  page("/console/verifiers/new", ACCESS.administer, showNewVerifier),
  form("/console/verifiers", ACCESS.administer, sendVerifier),
  page("/console/verifiers/:id", ACCESS.readConsole, showVerifier),
  page("/console/schemas", ACCESS.readConsole, showSchemas),
  page("/console/schemas/new", ACCESS.administer, showNewSchema),
  form("/console/schemas", ACCESS.administer, sendSchema),
  page("/console/schemas/:id", ACCESS.readConsole, showSchema),
  page("/console/bench", ACCESS.readConsole, showBench),
  trial("/console/bench", ACCESS.readConsole, tryBench),
  page("/console/webhooks", ACCESS.administer, showEndpoints),
  page("/console/webhooks/new", ACCESS.administer, showNewEndpoint),
  form("/console/webhooks/new", ACCESS.administer, sendNewEndpoint),
  page("/console/webhooks/:id", ACCESS.administer, showEndpoint),
  form("/console/webhooks/:id/example", ACCESS.administer, sendExampleEvent),
  form("/console/webhooks/:id/recover", ACCESS.administer, sendRecovery),
  page("/console/webhooks/:id/disable", ACCESS.administer, showDisabling),
  form("/console/webhooks/:id/disable", ACCESS.administer, sendDisabling),
  page("/console/deliveries", ACCESS.administer, showDeliveries),
  page("/console/deliveries/:id", ACCESS.administer, showDelivery),
  form("/console/deliveries/:id/redeliver", ACCESS.administer, sendRedelivery),

  page("/console/purchases", ACCESS.readConsole, showPurchases),
  page("/console/purchases/:id", ACCESS.readConsole, showPurchasePage),
  page("/console/purchases/:id/say/:verb", ACCESS.administer, showSaying),
  form("/console/purchases/:id/say/:verb", ACCESS.administer, sendSaying),

  ...moneyRoutes,

  ...peopleRoutes,
  ...settingsRoutes(instance),
  ...agentRoutes,

  ...(isDevelopment ? [page("/console/components", ACCESS.readConsole, showComponents)] : []),
  worker(PUSH_WORKER.path, PUSH_WORKER.type, PUSH_WORKER.body),
  ...Object.values(ASSETS).map(({ path, type, body }) => file(path, type, body)),
];

const moneyRoutes: readonly Route[] = [
  page("/console/money", ACCESS.readConsole, showMoney),
  page("/console/money/deposit", ACCESS.administer, showDepositForm),
  form("/console/money/deposit", ACCESS.administer, sendDeposit),
  page("/console/money/statements", ACCESS.readConsole, showStatements),
  download("/console/money/statements/file", ACCESS.readConsole, createStatementFiles()),
  page("/console/money/solvency", ACCESS.readConsole, showSolvency),
  download("/console/money/solvency/proof", ACCESS.readConsole, openProof),
  page("/console/money/payees", ACCESS.readConsole, showPayees),
  page("/console/money/payouts", ACCESS.readConsole, showPayouts),
  page("/console/money/payouts/submit", ACCESS.administer, showSubmitting),
  form("/console/money/payouts/submit", ACCESS.administer, sendSubmitting),
  page("/console/money/payouts/end", ACCESS.administer, showEnding),
  form("/console/money/payouts/end", ACCESS.administer, sendEnding),
  page("/console/money/corrections", ACCESS.readConsole, showCorrections),
  page("/console/money/corrections/new", ACCESS.administer, showCorrecting),
  form("/console/money/corrections/new", ACCESS.administer, sendCorrecting),
  page("/console/money/corrections/decide", ACCESS.administer, showDeciding),
  form("/console/money/corrections/decide", ACCESS.administer, sendDeciding),
];

const peopleRoutes: readonly Route[] = [
  page("/console/people", ACCESS.administer, showPeople),
  page("/console/people/new", ACCESS.administer, showInvitation),
  form("/console/people/new", ACCESS.administer, sendInvitation),
  page("/console/people/:id", ACCESS.administer, showPerson),
  form("/console/people/:id/role", ACCESS.administer, sendRole),
  form("/console/people/:id/sign-out", ACCESS.administer, sendSignOutOf),
  form("/console/people/:id/reset-link", ACCESS.administer, sendResetLink),
  page("/console/people/:id/remove", ACCESS.administer, showRemoval),
  form("/console/people/:id/remove", ACCESS.administer, sendRemoval),
  page("/console/audit-log", ACCESS.administer, showAuditLog),

  page("/console/account", ACCESS.keepOwnSignIn, showAccount),
  form("/console/account/name", ACCESS.keepOwnSignIn, sendOwnName),
  form("/console/account/password", ACCESS.keepOwnSignIn, sendOwnPassword),
  form("/console/account/sign-out", ACCESS.keepOwnSignIn, sendOwnSignOut),
  page("/console/account/remove-passkey", ACCESS.keepOwnSignIn, showPasskeyRemoval),
  form("/console/account/remove-passkey", ACCESS.keepOwnSignIn, sendPasskeyRemoval),
];

const settingsRoutes = (instance: InstanceState | null): readonly Route[] => [
  page("/console/settings", ACCESS.readConsole, showSettings(instance)),
  page("/console/settings/kill-switch/:state", ACCESS.administer, showKillSwitch),
  form("/console/settings/kill-switch/:state", ACCESS.administer, sendKillSwitch(instance)),
  form("/console/settings/passkey-threshold", ACCESS.ownOrganisation, sendThreshold(instance)),
  form("/console/settings/second-factor", ACCESS.ownOrganisation, sendSecondFactor(instance)),
  form("/console/settings/receipt-specs", ACCESS.administer, sendReceiptSpecs(instance)),
  form("/console/settings/messaging-decisions", ACCESS.administer, sendMessagingDecisions(instance)),
];

const agentRoutes: readonly Route[] = [
  page("/console/agents", ACCESS.readConsole, showAgents),
  page("/console/agents/new", ACCESS.administer, showNewAgent),
  form("/console/agents/new", ACCESS.administer, sendNewAgent),
  page("/console/agents/:id", ACCESS.readConsole, showAgent),
  page("/console/agents/:id/edit", ACCESS.administer, showEdit),
  form("/console/agents/:id/edit", ACCESS.administer, sendEdit),
  page("/console/agents/:id/pause", ACCESS.pauseAgent, showStatusChange("pause")),
  form("/console/agents/:id/pause", ACCESS.pauseAgent, sendStatusChange("pause")),
  page("/console/agents/:id/activate", ACCESS.administer, showStatusChange("activate")),
  form("/console/agents/:id/activate", ACCESS.administer, sendStatusChange("activate")),
  page("/console/agents/:id/kill", ACCESS.administer, showStatusChange("kill")),
  form("/console/agents/:id/kill", ACCESS.administer, sendStatusChange("kill")),

  page("/console/agents/:id/keys", ACCESS.administer, showKeys),
  form("/console/agents/:id/keys", ACCESS.administer, sendNewKey),
  page("/console/keys/:id/rotate", ACCESS.administer, showRotate),
  form("/console/keys/:id/rotate", ACCESS.administer, sendRotate),
  page("/console/keys/:id/revoke", ACCESS.administer, showRevoke),
  form("/console/keys/:id/revoke", ACCESS.administer, sendRevoke),

  page("/console/agents/:id/sessions", ACCESS.readConsole, showSessions),
  page("/console/agents/:id/sessions/new", ACCESS.administer, showNewSession),
  form("/console/agents/:id/sessions/new", ACCESS.administer, sendNewSession),
  page("/console/sessions/:id", ACCESS.readConsole, showSession),
  page("/console/sessions/:id/end", ACCESS.administer, showEndSession),
  form("/console/sessions/:id/end", ACCESS.administer, sendEndSession),
];
