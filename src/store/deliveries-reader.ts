import type { Escalation } from "../core/escalation.ts";
import type { MessagingAccount, MessagingCode } from "../core/messaging.ts";
import type { Channel, Notice, NoticeSettings, PlannedNotice } from "../core/notice.ts";
import type { PushSubscription } from "../core/push.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Part, Scope } from "./scope.ts";

/** The notices of an organisation and mode that go by one channel. */
export type NoticeQueue = Scope & { readonly channel: Channel };

/** An escalation of which people are to hear, as it stands; its status is null where the escalation is gone. */
export type PlannedEscalation = {
  readonly plan: PlannedNotice;
  readonly status: Escalation["status"] | null;
  readonly raisedBy: string | null;
};

/** The part of the reads that is about what is sent to others: events to endpoints, and notices to people. */
export interface DeliveriesReader {
  readonly webhooks: {
    get(id: string): Promise<WebhookEndpoint | null>;
    /** In the order of ids; all of them where no part is asked for. */
    list(scope: Scope, part?: Part): Promise<readonly WebhookEndpoint[]>;
    /** The enabled endpoints of all organisations, in order of id. */
    enabled(): Promise<readonly WebhookEndpoint[]>;
    /** The endpoints of all organisations to which a delivery is due at this time. */
    withWork(now: number): Promise<readonly WebhookEndpoint[]>;
  };
  readonly deliveries: {
    get(id: string): Promise<WebhookDelivery | null>;
    /** The most recent ones, of all endpoints or of one, newest first. */
    list(scope: Scope, limit: number, webhookId?: string): Promise<readonly WebhookDelivery[]>;
    /** Those of all endpoints that come after one in that order; without one, from the newest on. */
    olderThan(
      scope: Scope,
      delivery: Pick<WebhookDelivery, "id" | "createdAt"> | null,
      limit: number,
    ): Promise<readonly WebhookDelivery[]>;
    /** Those that were made with the moves of one warrant, newest first. What was sent again later is not among them. */
    ofMoves(
      scope: Scope,
      moves: readonly Pick<TraceEntry, "warrantId" | "recordedAt">[],
      limit: number,
    ): Promise<readonly WebhookDelivery[]>;
    /**
     * The deliveries that are due to an endpoint, the longest waiting first. A later event of a warrant is
     * not due before the first attempt of an earlier one has ended.
     */
    due(webhookId: string, now: number, limit: number): Promise<readonly WebhookDelivery[]>;
    /** Deliveries whose attempt should have ended by this time. */
    cutOff(time: number, limit: number): Promise<readonly WebhookDelivery[]>;
    /** Deliveries whose attempt should end, or begin, only after these times. */
    beyond(claimedUntil: number, nextAttemptAt: number, limit: number): Promise<readonly WebhookDelivery[]>;
    /**
     * The exhausted deliveries to an endpoint that were made since this time, oldest first. An event that was
     * delivered later is left out.
     */
    exhaustedSince(webhookId: string, since: number, limit: number): Promise<readonly WebhookDelivery[]>;
    /** How many deliveries wait for an attempt or have one under way. */
    waiting(): Promise<number>;
    /** When the next attempt of any delivery is due, epoch milliseconds; null where none is planned. */
    nextAttemptAt(): Promise<number | null>;
  };
  readonly messaging: {
    accountOf(userId: string): Promise<MessagingAccount | null>;
    /** Whose chat it is, of any organisation. */
    accountOfChat(chatId: string): Promise<MessagingAccount | null>;
    codeByHash(codeHash: string): Promise<MessagingCode | null>;
    /** A person's code, which may have expired. */
    codeOf(userId: string): Promise<MessagingCode | null>;
  };
  readonly notices: {
    get(id: string): Promise<Notice | null>;
    settingsOf(userId: string): Promise<NoticeSettings | null>;
    /** When people are to hear of an escalation next, epoch milliseconds; null where of none. */
    nextPlanAt(): Promise<number | null>;
    /** The organisations and modes with escalations of which people are to hear now; those of live come first. */
    scopesToPlan(now: number): Promise<readonly Scope[]>;
    /** Those escalations, the longest due first. */
    planned(scope: Scope, now: number, limit: number): Promise<readonly PlannedEscalation[]>;
    plannedCount(scope: Scope, now: number): Promise<number>;
    /** When the next attempt of any notice is due, epoch milliseconds; null where none is planned. */
    nextAttemptAt(): Promise<number | null>;
    /** The queues that have notices to send now; those of live come first. */
    queuesToSend(now: number): Promise<readonly NoticeQueue[]>;
    /** The notices that are due in a queue, the longest waiting first. */
    due(queue: NoticeQueue, now: number, limit: number): Promise<readonly Notice[]>;
    /** Notices whose attempt should have ended by this time. */
    cutOff(time: number, limit: number): Promise<readonly Notice[]>;
    /** Notices whose attempt should end, or begin, only after these times. */
    beyond(claimedUntil: number, nextAttemptAt: number, limit: number): Promise<readonly Notice[]>;
    /** The most recent ones to a person, newest first. */
    ofUser(userId: string, limit: number): Promise<readonly Notice[]>;
    /** The browsers of a person that may be notified, oldest first. */
    pushSubscriptionsOf(userId: string): Promise<readonly PushSubscription[]>;
  };
}
