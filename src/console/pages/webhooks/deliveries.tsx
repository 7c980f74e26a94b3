/** @jsxImportSource hono/jsx */
import { isRefusal } from "../../../core/errors.ts";
import { printableLines } from "../../../core/hidden-characters.ts";
import { EVENT_TYPES } from "../../../core/warrant.ts";
import { DELIVERY_STATUSES, type WebhookDelivery, type WebhookEndpoint } from "../../../core/webhook.ts";
import { redeliver } from "../../../services/admin/deliveries.ts";
import {
  type DeliveriesAsked,
  type DeliveryDetail,
  readDeliveries,
  readDelivery,
  readEndpoint,
  readEndpoints,
} from "../../../services/console/webhooks.ts";
import { Card, Empty, Facts, Head, Notice, Pager } from "../../parts/blocks.tsx";
import { CHOICES_MAX, choicesOf } from "../../parts/choices.ts";
import { Badge, Id, Text, Time } from "../../parts/figures.tsx";
import { Filters } from "../../parts/filters.tsx";
import { Choose, Form } from "../../parts/forms.tsx";
import type { Submission, Visit } from "../../route.ts";
import { answerWords, DeliveryBadge, DeliveryTable, STATUS_WORDS } from "./words.tsx";

/** What was sent to endpoints: the list with its filters, and one delivery with its request and its answer. */

type OfDelivery = { readonly id: string };

/** What the URL asks for. What it says wrongly is as if it said nothing. */
const askedOf = (search: URLSearchParams): DeliveriesAsked => ({
  webhookId: search.get("endpoint") || null,
  status: DELIVERY_STATUSES.find((status) => status === search.get("status")) ?? null,
  event: EVENT_TYPES.find((event) => event === search.get("event")) ?? null,
  olderThan: search.get("after") || null,
});

function pathOf({ webhookId, status, event }: DeliveriesAsked, after: string | null): string {
  const query = new URLSearchParams({
    ...(webhookId !== null && { endpoint: webhookId }),
    ...(status !== null && { status }),
    ...(event !== null && { event }),
    ...(after !== null && { after }),
  });
  return query.size > 0 ? `/console/deliveries?${query}` : "/console/deliveries";
}

export async function showDeliveries(visit: Visit) {
  const asked = askedOf(visit.search);
  const offered = await endpointsOffered(visit, asked);
  if (isRefusal(offered)) return offered;
  const page = await readDeliveries(visit.ctx, visit.caller, asked);
  if (isRefusal(page)) return page;
  return {
    title: "Deliveries",
    section: "webhooks",
    content: (
      <>
        <Head
          title="Deliveries"
          about="Each event on its way to each endpoint, newest first."
          actions={
            <a class="button" href="/console/webhooks">
              Endpoints
            </a>
          }
        />
        <Card>
          <DeliveryFilters asked={asked} endpoints={offered} />
          <div id="results" data-live={asked.olderThan === null ? "deliveries" : undefined}>
            {page.deliveries.length === 0 && page.next === null ? (
              <Nothing asked={asked} />
            ) : (
              <>
                {page.deliveries.length === 0 ? (
                  <p class="quiet">None among those. The search goes on with older ones.</p>
                ) : (
                  <DeliveryTable of={page.deliveries} endpoints={page.endpoints} />
                )}
                <Pager
                  newer={asked.olderThan === null ? null : pathOf(asked, null)}
                  newerWords="← Newest"
                  older={page.next === null ? null : pathOf(asked, page.next)}
                />
              </>
            )}
          </div>
        </Card>
      </>
    ),
  } as const;
}

const ANY = { value: "", words: "Any" };

/** The endpoints that the filter names, the one that is chosen among them. */
async function endpointsOffered({ ctx, caller }: Visit, { webhookId }: DeliveriesAsked) {
  const first = await readEndpoints(ctx, caller, null, CHOICES_MAX);
  if (isRefusal(first)) return first;
  const chosen = webhookId === null ? null : await readEndpoint(ctx, caller, webhookId);
  const isNamed = chosen === null || isRefusal(chosen) || first.endpoints.some(({ id }) => id === chosen.id);
  return isNamed ? first.endpoints : [...first.endpoints, chosen];
}

const DeliveryFilters = ({
  asked,
  endpoints,
}: {
  asked: DeliveriesAsked;
  endpoints: readonly WebhookEndpoint[];
}) => (
  <Filters path="/console/deliveries">
    <Choose
      name="endpoint"
      label="Endpoint"
      value={asked.webhookId ?? ""}
      choices={choicesOf(
        endpoints.map(({ id, url }) => ({ id, name: url.slice(0, 80) })),
        "Any",
        asked.webhookId,
      )}
    />
    <Choose
      name="status"
      label="Status"
      value={asked.status ?? ""}
      choices={[ANY, ...DELIVERY_STATUSES.map((value) => ({ value, words: STATUS_WORDS[value][0] }))]}
    />
    <Choose
      name="event"
      label="Event"
      value={asked.event ?? ""}
      choices={[ANY, ...EVENT_TYPES.map((value) => ({ value, words: value }))]}
    />
  </Filters>
);

const Nothing = ({ asked: { webhookId, status, event } }: { asked: DeliveriesAsked }) =>
  webhookId === null && status === null && event === null ? (
    <Empty title="Nothing was sent yet">
      <p>
        Events go to the endpoints that there are when they happen. <a href="/console/webhooks">Endpoints</a>
      </p>
    </Empty>
  ) : (
    <Empty title="No delivery is like that">
      <p>
        Try another status or event. <a href="/console/deliveries">Show all</a>
      </p>
    </Empty>
  );

/** What the page says after something was done, by the word in its URL. */
const DONE: Readonly<Record<string, string>> = {
  redelivered: "The event is on its way again: this is the new delivery.",
  example: "The example is on its way.",
};

export async function showDelivery(visit: Visit<OfDelivery>) {
  const detail = await readDelivery(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(detail)) return detail;
  const { delivery, webhook } = detail;
  const done = DONE[visit.search.get("done") ?? ""];
  return {
    title: "Delivery",
    section: "webhooks",
    content: (
      <>
        <div id="head" class="stack" data-live="webhooks">
          <Head
            title={delivery.event}
            about={
              <>
                to{" "}
                <a href={`/console/webhooks/${webhook.id}`}>
                  <Text of={webhook.url} />
                </a>
              </>
            }
            actions={
              webhook.disabled ? null : (
                <Form
                  by={visit}
                  action={`/console/deliveries/${delivery.id}/redeliver`}
                  class="plain-form"
                  label="Redeliver"
                >
                  <button type="submit" class="primary">
                    Send it again
                  </button>
                </Form>
              )
            }
          />
          {webhook.disabled ? (
            <Notice kind="note">The endpoint is disabled, so it gets nothing more.</Notice>
          ) : null}
        </div>
        {done ? <Notice kind="done">{done}</Notice> : null}
        <div class="columns">
          <div>
            <Request of={detail} />
            <div id="response" data-live={delivery.id}>
              <Response of={delivery} />
            </div>
          </div>
          <div>
            <div id="progress" data-live={delivery.id}>
              <Progress of={delivery} />
            </div>
          </div>
        </div>
      </>
    ),
  } as const;
}

const Progress = ({ of: delivery }: { of: WebhookDelivery }) => (
  <Card title="Delivery">
    <Facts
      of={[
        ["Status", <DeliveryBadge of={delivery.status} />],
        ["Attempts", `${delivery.attempts} of 4`],
        [
          "Next attempt",
          delivery.nextAttemptAt === null ? (
            delivery.claimedUntil === null ? (
              "none"
            ) : (
              "under way"
            )
          ) : (
            <Time at={delivery.nextAttemptAt} />
          ),
        ],
        ["Made", <Time at={delivery.createdAt} />],
        [
          "Warrant",
          delivery.warrantId === null ? (
            "none: it is an example"
          ) : (
            <a class="id" href={`/console/warrants/${delivery.warrantId}`}>
              {delivery.warrantId}
            </a>
          ),
        ],
        ["Id", <Id of={delivery.id} />],
        ["Event", <Id of={delivery.eventId} />],
      ]}
    />
  </Card>
);

const pretty = (json: string): string => JSON.stringify(JSON.parse(json), null, 2);

/** Text as it goes over the wire, under its name. */
const Wire = ({ name, of }: { name: string; of: string }) => (
  <div>
    <h3>{name}</h3>
    <pre class="seen tall" tabindex={0}>
      {printableLines(of)}
    </pre>
  </div>
);

const Request = ({ of: { webhook, request } }: { of: DeliveryDetail }) => (
  <Card title="Request" aside={<a href="/docs/webhooks">What is in it</a>}>
    <Wire
      name="Headers"
      of={[
        `POST ${webhook.url}`,
        ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
      ].join("\n")}
    />
    <Wire name="Body" of={pretty(request.body)} />
    <p class="hint">
      The body as it is sent, here with blanks between. Each attempt is signed anew, so the signatures are not
      shown.
    </p>
  </Card>
);

const isSuccess = (code: number): boolean => code >= 200 && code <= 299;

const Response = ({ of: delivery }: { of: WebhookDelivery }) => (
  <Card
    title="Answer to the last attempt"
    aside={delivery.durationMs === null ? null : <span class="quiet">{delivery.durationMs} ms</span>}
  >
    <p>
      {delivery.responseCode === null ? (
        answerWords(delivery)
      ) : (
        <Badge look={isSuccess(delivery.responseCode) ? "pass" : "fail"} of={String(delivery.responseCode)} />
      )}
    </p>
    {delivery.responseCode !== null && delivery.responseStart ? (
      <Wire name="Body" of={delivery.responseStart} />
    ) : null}
    <p class="hint">Up to a kilobyte of the answer is kept.</p>
  </Card>
);

export async function sendRedelivery({ ctx, caller, params }: Submission<OfDelivery>) {
  const made = await redeliver(ctx, caller, { delivery_id: params.id });
  return isRefusal(made) ? made : { to: `/console/deliveries/${made.id}?done=redelivered` };
}
