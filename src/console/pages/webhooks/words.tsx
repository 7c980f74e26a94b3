/** @jsxImportSource hono/jsx */
import type { DeliveryStatus, WebhookDelivery, WebhookEndpoint } from "../../../core/webhook.ts";
import { Table } from "../../parts/blocks.tsx";
import { Badge, Line, Time } from "../../parts/figures.tsx";

/** What the pages of deliveries have in common. */

export const STATUS_WORDS: Readonly<Record<DeliveryStatus, readonly [words: string, look: string]>> = {
  pending: ["Pending", "held"],
  delivered: ["Delivered", "pass"],
  failed: ["Failed, tried again", "escalated"],
  exhausted: ["Given up", "fail"],
};

export const DeliveryBadge = ({ of }: { of: DeliveryStatus }) => (
  <Badge look={STATUS_WORDS[of][1]} of={STATUS_WORDS[of][0]} />
);

/** The status of the last answer, or why there is none. */
export const answerWords = ({ responseCode, responseStart, attempts }: WebhookDelivery): string => {
  if (responseCode !== null) return String(responseCode);
  return attempts === 0 ? "not sent yet" : (responseStart ?? "none").replaceAll("_", " ");
};

/** @param endpoints where they may have gone; without them all went to the same one */
export const DeliveryTable = ({
  of,
  endpoints,
}: {
  of: readonly WebhookDelivery[];
  endpoints?: readonly WebhookEndpoint[];
}) => {
  const urls = endpoints && new Map(endpoints.map(({ id, url }) => [id, url]));
  return (
    <Table
      label="Deliveries"
      columns={["Event", "Status", "Answer", "Made", "Attempts", ...(urls ? ["Endpoint"] : [])]}
      wide={["Attempts", "Endpoint"]}
      numbers={["Attempts"]}
      rows={of.map((delivery) => [
        <a href={`/console/deliveries/${delivery.id}`}>{delivery.event}</a>,
        <DeliveryBadge of={delivery.status} />,
        answerWords(delivery),
        <Time at={delivery.createdAt} />,
        String(delivery.attempts),
        ...(urls ? [<Line of={urls.get(delivery.webhookId) ?? delivery.webhookId} />] : []),
      ])}
    />
  );
};
