/** The changes that the audit log records, each as noun and verb, with the end of a sentence that begins with who made it. */
export const AUDIT_WORDS = {
  "organisation.created": "made the organisation",
  "user.created": "added a person",
  "user.renamed": "changed their own name",
  "user.role_changed": "changed the role of",
  "user.removed": "removed",
  "user.password_changed": "changed their password",
  "user.password_reset_issued": "made a link to a password for",
  "user.password_reset": "chose a password by a link",
  "user.signed_in": "signed in",
  "user.sign_in_failed": "failed to sign in as",
  "user.signed_out": "signed out",
  "user.signed_out_everywhere": "signed out everywhere",
  "user.sign_ins_ended": "ended sign-ins of",
  "passkey.registered": "added a passkey",
  "passkey.removed": "removed a passkey",
  "passkeys.reset": "deleted all passkeys of",
  "agent.created": "made the agent",
  "agent.changed": "changed the agent",
  "agent.status_changed": "changed the status of the agent",
  "api_key.created": "made an API key",
  "api_key.rotated": "replaced an API key",
  "api_key.revoked": "revoked an API key",
  "spend_session.created": "made a spend session",
  "spend_session.revoked": "revoked a spend session",
  "policy.created": "saved a policy",
  "verifier.created": "saved a verifier",
  "schema.created": "saved a schema",
  "source_key.added": "registered a key of a source",
  "source_key.removed": "removed a key of a source",
  "balance.funded": "recorded a deposit",
  "deposit.assigned": "assigned a transfer to the treasury",
  "deposit_sender.added": "registered a sender of deposits",
  "deposit_sender.removed": "removed a sender of deposits",
  "correction.proposed": "proposed a correction",
  "correction.recorded": "recorded a correction",
  "correction.withdrawn": "withdrew a correction",
  "payout.released": "released a payout on a chain to",
  "payout.submitted": "submitted a payout",
  "payout.paid": "marked a payout as paid",
  "payout.failed": "marked a payout as failed",
  "treasury.resumed": "resumed the payouts of the treasury",
  "purchase.resolved": "resolved a purchase",
  "purchase.acknowledged": "acknowledged what a chain says of a purchase",
  "webhook.created": "made a webhook",
  "webhook.disabled": "disabled a webhook",
  "delivery.redelivered": "delivered an event again",
  "webhook.recovered": "recovered deliveries of a webhook",
  "webhook.example_sent": "sent an example to a webhook",
  "kill_switch.changed": "turned the kill switch",
  "passkey_threshold.changed": "changed the passkey threshold",
  "receipt_specs.changed": "changed whether receipts show specs",
  "second_factor.changed": "changed the second factor",
  "notice_settings.changed": "changed what notices are sent",
  "push_devices.changed": "added or removed a device for push notices",
  "messaging.linked": "linked a chat of the messaging bot",
  "messaging.unlinked": "unlinked a chat of the messaging bot",
  "messaging_decisions.changed": "changed whether escalations are decided in chats",
  "escalation.resolved_in_chat": "decided an escalation in a chat",
  "ledger.restored_unverified": "restored the ledger from a backup that no key verified",
} as const;
export type AuditAction = keyof typeof AUDIT_WORDS;

export const AUDIT_ACTIONS = Object.keys(AUDIT_WORDS) as [AuditAction, ...AuditAction[]];

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
