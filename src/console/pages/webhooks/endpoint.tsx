/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuseField, statusOf } from "../../../core/errors.ts";
import { HOUR_MS, isoTime } from "../../../core/time.ts";
import type { WebhookEndpoint } from "../../../core/webhook.ts";
import { recoverWebhook, sendExample } from "../../../services/admin/deliveries.ts";
import { disableWebhook } from "../../../services/admin/webhooks.ts";
import { readDeliveries, readEndpoint } from "../../../services/console/webhooks.ts";
import { Card, Empty, Facts, Head, Notice } from "../../parts/blocks.tsx";
import { Id, Text, Time } from "../../parts/figures.tsx";
import { Choose, Form } from "../../parts/forms.tsx";
import { problemsOf } from "../../problems.ts";
import type { Submission, Visit } from "../../route.ts";
import { EndpointBadge, eventsOf } from "./endpoints.tsx";
import { DeliveryTable } from "./words.tsx";

/** One endpoint: what it gets, an example for it, what it missed, and its end. */

type OfEndpoint = { readonly id: string };

/** The choices of how far back missed events are looked for. Older deliveries are deleted after some weeks anyway. */
const SINCE = {
  "1h": ["In the last hour", HOUR_MS],
  "1d": ["In the last day", 24 * HOUR_MS],
  "7d": ["In the last 7 days", 7 * 24 * HOUR_MS],
  "30d": ["In the last 30 days", 30 * 24 * HOUR_MS],
} as const satisfies Readonly<Record<string, readonly [string, number]>>;

const isSince = (text: string): text is keyof typeof SINCE => Object.hasOwn(SINCE, text);

export const showEndpoint = (visit: Visit<OfEndpoint>) => endpointPage(visit, null);

async function endpointPage(visit: Visit<OfEndpoint>, refusal: Refusal | null) {
  const { ctx, caller, params, search } = visit;
  const webhook = await readEndpoint(ctx, caller, params.id);
  if (isRefusal(webhook)) return webhook;
  const only = { webhookId: webhook.id, status: null, event: null, olderThan: null };
  const page = await readDeliveries(ctx, caller, only);
  if (isRefusal(page)) return page;
  const done = refusal ? null : doneWords(search);
  const problems = refusal ? problemsOf(refusal, ["since"]) : {};
  return {
    title: "Endpoint",
    section: "webhooks",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <div id="head" data-live="webhooks">
          <Head
            title={
              <>
                Endpoint <EndpointBadge of={webhook} />
              </>
            }
            about={<Text of={webhook.url} />}
            actions={webhook.disabled ? null : <Actions visit={visit} webhook={webhook} />}
          />
        </div>
        {done ? <Notice kind="done">{done}</Notice> : null}
        {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
        <div class="columns">
          <div>
            <Card
              title="Deliveries"
              aside={<a href={`/console/deliveries?endpoint=${webhook.id}`}>All, with filters</a>}
            >
              <div id="deliveries" data-live={webhook.id}>
                {page.deliveries.length === 0 ? (
                  <Empty title="Nothing was sent to it yet">
                    <p>It gets what happens from now on. Send it an example to see that it listens.</p>
                  </Empty>
                ) : (
                  <DeliveryTable of={page.deliveries} />
                )}
              </div>
            </Card>
          </div>
          <div>
            <Card title="Details">
              <Facts
                of={[
                  ["Events", eventsOf(webhook)],
                  ["Added", <Time at={webhook.createdAt} />],
                  ["Id", <Id of={webhook.id} />],
                ]}
              />
              <p class="hint">
                Its URL, events and secret stay as they are.{" "}
                <a href={`/console/webhooks/new?from=${webhook.id}`}>Add another one like it</a> with what is
                to be different, then disable this one.
              </p>
            </Card>
            <div id="recover" class="stack" data-live="webhooks">
              {webhook.disabled ? null : <Recover visit={visit} webhook={webhook} problem={problems.since} />}
            </div>
          </div>
        </div>
      </>
    ),
  } as const;
}

type EndpointProps = { visit: Visit; webhook: WebhookEndpoint };

const Actions = ({ visit, webhook }: EndpointProps) => (
  <>
    <Form
      by={visit}
      action={`/console/webhooks/${webhook.id}/example`}
      class="plain-form"
      label="Send an example"
    >
      <button type="submit">Send an example</button>
    </Form>
    <a class="button danger" href={`/console/webhooks/${webhook.id}/disable`} data-dialog>
      Disable
    </a>
  </>
);

const Recover = ({ visit, webhook, problem }: EndpointProps & { problem: string | undefined }) => (
  <Card title="After an outage">
    <Form by={visit} action={`/console/webhooks/${webhook.id}/recover`} label="Recover">
      <Choose
        name="since"
        label="Send again what never arrived"
        value="1d"
        problem={problem}
        hint="Events whose every attempt failed. A receiver recognises an event that it already has by its id."
        choices={Object.entries(SINCE).map(([value, [words]]) => ({ value, words }))}
      />
      <button type="submit">Send them again</button>
    </Form>
  </Card>
);

/** What the page says after something was done. */
function doneWords(search: URLSearchParams): string | null {
  if (search.get("done") === "disabled") return "The endpoint is disabled. It gets nothing more.";
  const count = /^recovered-(\d{1,9})$/.exec(search.get("done") ?? "")?.[1];
  if (count === undefined) return null;
  if (count === "0") return "Nothing was missed since then.";
  return count === "1" ? "1 event is on its way again." : `${count} events are on their way again.`;
}

export async function sendExampleEvent({ ctx, caller, params }: Submission<OfEndpoint>) {
  const made = await sendExample(ctx, caller, { webhook_id: params.id });
  return isRefusal(made) ? made : { to: `/console/deliveries/${made.id}?done=example` };
}

export async function sendRecovery(submission: Submission<OfEndpoint>) {
  const { ctx, caller, params, fields } = submission;
  const chosen = fields.since ?? "";
  const recovered = isSince(chosen)
    ? await recoverWebhook(ctx, caller, {
        webhook_id: params.id,
        since: isoTime(ctx.now() - SINCE[chosen][1]),
      })
    : refuseField("since", "must be one of the list");
  if (isRefusal(recovered)) return endpointPage(submission, recovered);
  return { to: `/console/webhooks/${params.id}?done=recovered-${recovered.deliveries}` };
}

export async function showDisabling(visit: Visit<OfEndpoint>) {
  const webhook = await readEndpoint(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(webhook)) return webhook;
  return {
    title: "Disable the endpoint?",
    section: "webhooks",
    content: (
      <div id="confirm">
        <h1>Disable this endpoint?</h1>
        <p>
          <Text of={webhook.url} />
        </p>
        <p>
          It gets nothing more, not even what is on its way now. No money moves. This cannot be undone: to go
          on later, add the URL again, with a new secret.
        </p>
        <Form by={visit} action={`/console/webhooks/${webhook.id}/disable`} label="Confirm">
          <button type="submit" class="danger wide">
            Disable it
          </button>
        </Form>
        <a href={`/console/webhooks/${webhook.id}`} data-cancel>
          Leave it as it is
        </a>
      </div>
    ),
  } as const;
}

export async function sendDisabling({ ctx, caller, params }: Submission<OfEndpoint>) {
  const disabled = await disableWebhook(ctx, caller, { webhook_id: params.id });
  return isRefusal(disabled) ? disabled : { to: `/console/webhooks/${params.id}?done=disabled` };
}
