/** The changes that the audit log records, each as noun and verb. */
export const AUDIT_ACTIONS = [
  "organisation.created",
  "user.created",
  "user.renamed",
  "user.role_changed",
  "user.removed",
  "user.password_changed",
  "user.password_reset_issued",
  "user.password_reset",
  "user.signed_in",
  "user.sign_in_failed",
  "user.signed_out",
  "user.signed_out_everywhere",
  "user.sign_ins_ended",
  "passkey.registered",
  "passkey.removed",
  "passkeys.reset",
  "agent.created",
  "agent.changed",
  "agent.status_changed",
  "api_key.created",
  "api_key.rotated",
  "api_key.revoked",
  "spend_session.created",
  "spend_session.revoked",
  "policy.created",
  "verifier.created",
  "schema.created",
  "source_key.added",
  "source_key.removed",
  "balance.funded",
  "purchase.resolved",
  "purchase.acknowledged",
  "webhook.created",
  "webhook.disabled",
  "delivery.redelivered",
  "webhook.recovered",
  "webhook.example_sent",
  "kill_switch.changed",
  "passkey_threshold.changed",
  "receipt_specs.changed",
  "second_factor.changed",
  "notice_settings.changed",
  "messaging.linked",
  "messaging.unlinked",
  "messaging_decisions.changed",
  "escalation.resolved_in_chat",
  "ledger.restored_unverified",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What kind of thing an action is about: `api_key.created` → api_key. */
export const nounOf = (action: AuditAction): string => action.slice(0, action.indexOf("."));

/**
 * Who made a change: a signed-in person, or somebody at the command line of the machine itself. A stranger changes nothing,
 * but failed to sign in; the id is their network.
 */
export const ADMINISTRATOR_KINDS = ["user", "machine", "stranger"] as const;
export type Administrator =
  | { readonly kind: "user" | "stranger"; readonly id: string }
  | { readonly kind: "machine"; readonly id: null };

/** One entry of the audit log: who changed what, and how it was before and after. It holds no secret. */
export type AuditEntry = {
  readonly id: string;
  readonly organisationId: string;
  readonly actor: Administrator;
  readonly action: AuditAction;
  /** The id of what was changed. */
  readonly subject: string;
  /** The subject as the API shows it. Null before its creation, and after its removal. */
  readonly before: object | null;
  readonly after: object | null;
  readonly recordedAt: number;
};
