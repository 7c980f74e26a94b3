import type { Command } from "commander";
import type { Mode } from "../../core/roles.ts";
import { EVENT_TYPES } from "../../core/warrant.ts";
import type { deliveryRecord } from "../../resources/delivery.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { recoverWebhook, redeliver, sendExample } from "../../services/admin/deliveries.ts";
import {
  createWebhook,
  disableWebhook,
  listDeliveries,
  listWebhooks,
  type NewWebhook,
} from "../../services/admin/webhooks.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, listIfGiven } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

const eventsOf = ({ events }: Pick<NewWebhook, "events">): string =>
  events.length === 0 ? "all" : events.join(", ");

const webhookFields = (webhook: Omit<NewWebhook, "secret">) =>
  [
    ["id", webhook.id],
    ["url", webhook.url],
    ["events", eventsOf(webhook)],
    ["created", webhook.created_at],
  ] as const;

const deliveryFields = (delivery: ReturnType<typeof deliveryRecord>) =>
  [
    ["id", delivery.id],
    ["endpoint", delivery.webhook_id],
    ["event", `${delivery.event} ${delivery.event_id}`],
    ["warrant", delivery.warrant_id],
  ] as const;

export function addWebhooks(program: Command, tools: CommandLineTools): void {
  const webhooks = group(program, "webhooks", "say where events are sent, and send them again");
  addCreate(webhooks, tools);
  addDisable(webhooks, tools);
  addList(webhooks, tools);
  addDeliveries(webhooks, tools);
  addRedeliver(webhooks, tools);
  addRecover(webhooks, tools);
  addSendExample(webhooks, tools);
}

function addCreate(webhooks: Command, tools: CommandLineTools): void {
  const create = webhooks
    .command("create")
    .summary("create an endpoint; its secret is shown once")
    .description(
      "Creates a webhook endpoint, which gets the events from then on. Its signing secret is shown once.",
    )
    .requiredOption("--organisation <id>", "whose events it gets")
    .addOption(modeOption())
    .requiredOption("--url <url>", "where they are sent, http or https")
    .option(
      "--events <events>",
      `which ones, with commas between, of ${EVENT_TYPES.join(", ")} (default: all)`,
    );
  examples(
    create,
    "holdfast webhooks create --organisation org_… --mode sandbox --url https://shop.example/hook",
    "holdfast webhooks create --organisation org_… --mode live --url https://shop.example/hook --events warrant.released,warrant.refunded",
  );
  runsOnLedger(create, tools, {
    input: (flags: { organisation: string; mode: Mode; url: string; events?: string }) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
      url: flags.url,
      ...given({ events: listIfGiven(flags.events) }),
    }),
    verb: (ctx, input) => createWebhook(ctx, MACHINE, input),
    print: (webhook, { mode }) =>
      report(
        `Created a ${mode} webhook endpoint.`,
        [...webhookFields(webhook), ["secret", webhook.secret]],
        "The secret is shown once: give it to the receiver now. It signs every delivery.",
      ),
  });
}

function addDisable(webhooks: Command, tools: CommandLineTools): void {
  const disable = webhooks
    .command("disable")
    .summary("send nothing more to an endpoint")
    .description(
      "Disables an endpoint, which cannot be undone. It gets nothing more, not even deliveries that are due.",
    )
    .argument("<webhook>", "the endpoint's id");
  examples(disable, "holdfast webhooks disable whk_…");
  runsOnLedger(disable, tools, {
    input: (_: object, [webhookId = ""]) => ({ webhook_id: webhookId }),
    verb: (ctx, input) => disableWebhook(ctx, MACHINE, input),
    print: (webhook) => report("The webhook endpoint is disabled.", webhookFields(webhook)),
  });
}

function addList(webhooks: Command, tools: CommandLineTools): void {
  const list = webhooks
    .command("list")
    .summary("list an organisation's endpoints")
    .description("Lists an organisation's webhook endpoints in one mode, also those that are disabled.")
    .requiredOption("--organisation <id>", "whose endpoints they are")
    .addOption(modeOption());
  examples(list, "holdfast webhooks list --organisation org_… --mode sandbox");
  runsOnLedger(list, tools, {
    input: (flags: { organisation: string; mode: Mode }) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
    }),
    verb: (ctx, input) => listWebhooks(ctx, MACHINE, input),
    print: ({ data }, { mode }) =>
      data.length === 0
        ? `There is no endpoint yet, ${mode}.`
        : table(
            [mode, "status", "events", "url"],
            data.map((webhook) => [
              webhook.id,
              webhook.disabled ? "disabled" : "active",
              eventsOf(webhook),
              webhook.url,
            ]),
          ),
  });
}

function addDeliveries(webhooks: Command, tools: CommandLineTools): void {
  const deliveries = webhooks
    .command("deliveries")
    .summary("show the latest deliveries to an endpoint")
    .description(
      "Shows the 50 most recent deliveries to an endpoint: how often each was attempted, and what the receiver answered last.",
    )
    .argument("<webhook>", "the endpoint's id");
  examples(deliveries, "holdfast webhooks deliveries whk_…");
  runsOnLedger(deliveries, tools, {
    input: (_: object, [webhookId = ""]) => ({ webhook_id: webhookId }),
    verb: (ctx, input) => listDeliveries(ctx, MACHINE, input),
    print: ({ data }) =>
      data.length === 0
        ? "Nothing was sent to it yet."
        : table(
            ["delivery", "event", "status", "attempts", "answer", "ms", "created"],
            data.map((delivery) => [
              delivery.id,
              delivery.event,
              delivery.status,
              String(delivery.attempts),
              delivery.response_code === null
                ? (delivery.response_start ?? "none")
                : String(delivery.response_code),
              String(delivery.duration_ms ?? ""),
              delivery.created_at,
            ]),
          ),
  });
}

function addRedeliver(webhooks: Command, tools: CommandLineTools): void {
  const redeliverCommand = webhooks
    .command("redeliver")
    .summary("send an event once more")
    .description(
      "Makes a new delivery of the event of an earlier one, to the same endpoint. A running server sends it.",
    )
    .argument("<delivery>", "the earlier delivery's id");
  examples(redeliverCommand, "holdfast webhooks redeliver whd_…");
  runsOnLedger(redeliverCommand, tools, {
    input: (_: object, [deliveryId = ""]) => ({ delivery_id: deliveryId }),
    verb: (ctx, input) => redeliver(ctx, MACHINE, input),
    print: (delivery) => report("The event is on its way again.", deliveryFields(delivery)),
  });
}

function addRecover(webhooks: Command, tools: CommandLineTools): void {
  const recover = webhooks
    .command("recover")
    .summary("send again what an endpoint missed")
    .description(
      "For an endpoint that was down: makes new deliveries of the events that did not arrive, because every attempt failed. A running server sends them.",
    )
    .argument("<webhook>", "the endpoint's id")
    .requiredOption(
      "--since <time>",
      "events whose last attempt failed since then, such as 2026-01-31T00:00:00Z",
    );
  examples(recover, "holdfast webhooks recover whk_… --since 2026-01-31T00:00:00Z");
  runsOnLedger(recover, tools, {
    input: (flags: { since: string }, [webhookId = ""]) => ({ webhook_id: webhookId, since: flags.since }),
    verb: (ctx, input) => recoverWebhook(ctx, MACHINE, input),
    step: "finding what did not arrive",
    print: ({ deliveries, since }) =>
      deliveries === 0
        ? `Nothing was missed since ${since}.`
        : `${deliveries} ${deliveries === 1 ? "event is" : "events are"} on the way again.`,
  });
}

function addSendExample(webhooks: Command, tools: CommandLineTools): void {
  const example = webhooks
    .command("send-example")
    .summary("send an endpoint an example")
    .description(
      "Makes a delivery of an example, signed like any event, whose body says that it is an example. A running server sends it.",
    )
    .argument("<webhook>", "the endpoint's id");
  examples(example, "holdfast webhooks send-example whk_…");
  runsOnLedger(example, tools, {
    input: (_: object, [webhookId = ""]) => ({ webhook_id: webhookId }),
    verb: (ctx, input) => sendExample(ctx, MACHINE, input),
    print: (delivery) => report("The example is on its way.", deliveryFields(delivery)),
  });
}
