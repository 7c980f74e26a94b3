/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../../core/errors.ts";
import { EVENT_TYPES } from "../../../core/warrant.ts";
import type { WebhookEndpoint } from "../../../core/webhook.ts";
import { createWebhook } from "../../../services/admin/webhooks.ts";
import { readDeliveries, readEndpoint, readEndpoints } from "../../../services/console/webhooks.ts";
import { Card, Empty, Facts, Head, Notice, Pager, Table } from "../../parts/blocks.tsx";
import { Badge, Line, Text, Time } from "../../parts/figures.tsx";
import { Field, Form } from "../../parts/forms.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Submission, Visit } from "../../route.ts";
import { DeliveryTable } from "./words.tsx";

/** The endpoints that events are sent to, and the form that makes one. */

const PATH = "/console/webhooks";
const NEWEST = { webhookId: null, status: null, event: null, olderThan: null };

export async function showEndpoints(visit: Visit) {
  const after = visit.search.get("after");
  const page = await readEndpoints(visit.ctx, visit.caller, after);
  if (isRefusal(page)) return page;
  const newest = await readDeliveries(visit.ctx, visit.caller, NEWEST);
  if (isRefusal(newest)) return newest;
  return {
    title: "Webhooks",
    section: "webhooks",
    content: (
      <>
        <Head
          title="Webhooks"
          about={
            <>
              Events are sent to your servers, signed. <a href="/docs/webhooks">How to receive them</a>
            </>
          }
          actions={
            <a class="button primary" href="/console/webhooks/new">
              Add an endpoint
            </a>
          }
        />
        <Card title="Endpoints">
          <div id="endpoints" data-live="webhooks">
            {page.endpoints.length === 0 && after === null ? (
              <NoEndpoint />
            ) : (
              <Endpoints of={page.endpoints} />
            )}
            <Pager
              newer={after === null ? null : PATH}
              newerWords="← First"
              older={page.next === null ? null : `${PATH}?after=${page.next}`}
            />
          </div>
        </Card>
        <div id="latest" data-live="deliveries">
          <Card
            title="Latest deliveries"
            aside={newest.deliveries.length > 0 ? <a href="/console/deliveries">All of them</a> : null}
          >
            {newest.deliveries.length === 0 ? (
              <Empty title="Nothing was sent yet">
                <p>What is sent to your endpoints shows here, with each answer.</p>
              </Empty>
            ) : (
              <DeliveryTable of={newest.deliveries.slice(0, 10)} endpoints={newest.endpoints} />
            )}
          </Card>
        </div>
      </>
    ),
  } as const;
}

const NoEndpoint = () => (
  <Empty title="No endpoint yet">
    <p>An endpoint is a URL of yours that hears when a warrant is opened, checked, paid or refunded.</p>
    <a class="button primary" href="/console/webhooks/new">
      Add the first one
    </a>
  </Empty>
);

export const eventsOf = ({ events }: Pick<WebhookEndpoint, "events">): string =>
  events.length === 0 ? "all events" : events.join(", ");

export const EndpointBadge = ({ of }: { of: Pick<WebhookEndpoint, "disabled"> }) => (
  <Badge look={of.disabled ? "" : "pass"} of={of.disabled ? "disabled" : "active"} />
);

const Endpoints = ({ of }: { of: readonly WebhookEndpoint[] }) => (
  <Table
    label="Endpoints"
    columns={["URL", "Status", "Events", "Added"]}
    wide={["Added"]}
    rows={of.map((endpoint) => [
      <a href={`/console/webhooks/${endpoint.id}`}>
        <Line of={endpoint.url} />
      </a>,
      <EndpointBadge of={endpoint} />,
      eventsOf(endpoint),
      <Time at={endpoint.createdAt} />,
    ])}
  />
);

type Fields = Readonly<Record<string, string>>;

/** One that is to replace another begins with its URL and events. */
export async function showNewEndpoint(visit: Visit) {
  const from = visit.search.get("from");
  if (from === null) return newEndpointPage(visit, {}, null);
  const webhook = await readEndpoint(visit.ctx, visit.caller, from);
  if (isRefusal(webhook)) return webhook;
  const events = webhook.events.map((event) => [`event_${event}`, "on"] as const);
  return newEndpointPage(visit, { url: webhook.url, ...Object.fromEntries(events) }, null);
}

/** @param refusal why what was sent is refused; null where nothing was sent */
function newEndpointPage(visit: Visit, fields: Fields, refusal: Refusal | null) {
  const problem = refusal?.message ?? "";
  const urlProblem = /^url: (.*)$/s.exec(problem)?.[1];
  return {
    title: "Add an endpoint",
    section: "webhooks",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head title="Add an endpoint" about={`It gets what happens in ${visit.caller.mode} from then on.`} />
        <Card>
          {problem !== "" && urlProblem === undefined ? <Notice kind="problem">{problem}</Notice> : null}
          <Form by={visit} action="/console/webhooks/new" label="Add an endpoint">
            <Field
              name="url"
              label="URL"
              type="url"
              required
              value={fields.url ?? ""}
              problem={urlProblem}
              hint="Events are sent there as POST, signed with a secret that you see once."
              attributes={{ placeholder: "https://…", maxlength: "2048", autocomplete: "off" }}
            />
            <fieldset>
              <legend>Events</legend>
              <p class="hint">Without a choice it gets all of them.</p>
              {EVENT_TYPES.map((event) => (
                <label class="check">
                  <input
                    type="checkbox"
                    name={`event_${event}`}
                    value="on"
                    checked={fields[`event_${event}`] === "on"}
                  />
                  <code>{event}</code>
                </label>
              ))}
            </fieldset>
            <button type="submit" class="primary">
              Add it
            </button>
          </Form>
        </Card>
      </>
    ),
  } as const;
}

export async function sendNewEndpoint(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const made = await createWebhook(ctx, caller, {
    organisation_id: caller.organisationId,
    mode: caller.mode,
    url: (fields.url ?? "").trim(),
    events: EVENT_TYPES.filter((event) => fields[`event_${event}`] === "on"),
  });
  if (isRefusal(made)) return newEndpointPage(submission, fields, made);
  return {
    title: "Endpoint added",
    section: "webhooks",
    status: 201,
    hasSecret: true,
    content: (
      <>
        <Head title="The endpoint is added" about={<Text of={made.url} />} />
        <Card>
          <Secret
            label="Its signing secret"
            of={made.secret}
            kept="Give it to the receiver, which checks by it that a delivery is ours. Holdfast keeps it encrypted."
          />
          <Facts
            of={[
              ["Events", eventsOf(made)],
              ["How to check it", <a href="/docs/webhooks">Signatures</a>],
            ]}
          />
          <p class="actions">
            <a class="button primary" href={`/console/webhooks/${made.id}`}>
              I have saved it
            </a>
          </p>
        </Card>
      </>
    ),
  } as const;
}
