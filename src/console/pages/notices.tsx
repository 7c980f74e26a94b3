/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { CHANNELS, type Channel, type Notice as SentNotice } from "../../core/notice.ts";
import { addDevice, removeDevice } from "../../services/notices/devices.ts";
import {
  chooseNotices,
  type NoticeChoice,
  type OwnNotices,
  readOwnNotices,
  timeOfDay,
} from "../../services/notices/settings.ts";
import { makeTestNotice } from "../../services/notices/test-notice.ts";
import { Card, Empty, Facts, Head, Notice, Table } from "../parts/blocks.tsx";
import { Devices } from "../parts/devices.tsx";
import { Time } from "../parts/figures.tsx";
import { Field, Form, type Problems } from "../parts/forms.tsx";
import { problemsOf } from "../problems.ts";
import type { Page, Redirect, Submission, Visit } from "../route.ts";
import { chatCardOf } from "./chat.tsx";

/** How a person hears of what waits for them: the channels, the hours, and the last notices. */

const PATH = "/console/settings/notices";

/** What each form did. */
const DONE: Readonly<Record<string, string>> = {
  chosen: "This is how you hear of things from now on.",
  device: "You are notified on this device from now on.",
  removed: "You are not notified on that device any more.",
  unlinked: "Your chat is not linked any more. Nothing is sent there.",
  test: "A test notice is on its way. It is in the list below, with what becomes of it.",
};

/** The form that was refused, with what it was sent with, and why. */
type Tried =
  | { readonly form: "choice"; readonly choice: NoticeChoice; readonly refusal: Refusal }
  | { readonly form: "devices"; readonly name: string | null; readonly refusal: Refusal }
  | { readonly form: "test"; readonly refusal: Refusal };

export const showNotices = (visit: Visit) => noticesPage(visit, null);

async function noticesPage(visit: Visit, tried: Tried | null): Promise<Page> {
  const own = await readOwnNotices(visit.ctx, visit.caller);
  const chat = await chatCardOf(visit);
  const done = tried === null ? DONE[visit.search.get("done") ?? ""] : undefined;
  const problemsIn = (form: Tried["form"], fields: readonly string[]): Problems =>
    tried?.form === form ? problemsOf(tried.refusal, fields) : {};
  return {
    title: "Notices",
    section: null,
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <>
        <Head title="Notices" about="What Holdfast tells you without being asked, and when." />
        {done === undefined ? null : <Notice kind="done">{done}</Notice>}
        <div class="columns">
          <Card title="Channels and hours">
            <ChoiceForm
              visit={visit}
              choice={tried?.form === "choice" ? tried.choice : choiceOf(own)}
              problems={problemsIn("choice", ["from", "until", "time_zone"])}
            />
          </Card>
          <WhatYouHear />
        </div>
        <div id="devices" data-live="notices">
          <Card title="Your devices">
            <Devices
              visit={visit}
              devices={own.devices}
              name={tried?.form === "devices" ? tried.name : null}
              problems={problemsIn("devices", ["device_name"])}
            />
          </Card>
        </div>
        {chat ? (
          <div id="chat" data-live="notices">
            {chat}
          </div>
        ) : null}
        <div id="recent" data-live="notices">
          <Card title="The last notices to you">
            <Recent of={own.recent} />
            <Form
              by={visit}
              action={`${PATH}/test`}
              class="plain-form"
              label="Test notice"
              problem={problemsIn("test", [])[""]}
            >
              <button type="submit">Send me a test notice</button>
            </Form>
          </Card>
        </div>
      </>
    ),
  };
}

const WhatYouHear = () => (
  <Card title="What you hear of">
    <Facts
      of={[
        ["Escalations", "At once, and when one has waited for 24 and 72 hours. From operator up."],
        ["Disputes", "The same, to admins and owners other than who raised it."],
        ["Trouble", "Endpoints that lose events, failed backups, what /readyz says. From admin up."],
        ["Your account", "Reset links, and sign-ins from a new place, by e-mail, whatever you choose here."],
      ]}
    />
    <p class="hint">
      <a href="/docs/notices">More about notices</a>
    </p>
  </Card>
);

const choiceOf = ({ settings }: OwnNotices): NoticeChoice => ({
  channels: settings,
  sandbox: settings.sandbox,
  from: timeOfDay(settings.fromMinute),
  until: timeOfDay(settings.untilMinute),
  timeZone: settings.timeZone,
});

type ChoiceProps = { visit: Visit; choice: NoticeChoice; problems: Problems };

const ChoiceForm = ({ visit, choice, problems }: ChoiceProps) => (
  <Form by={visit} action={PATH} label="Channels and hours">
    {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
    {visit.ctx.notices.email.send === null ? (
      <Notice kind="note">
        This instance has no mail server, so no mail is sent. Its operator sets{" "}
        <a href="/docs/configuration">HOLDFAST_SMTP_URL</a>.
      </Notice>
    ) : null}
    {channelsHere(visit).map((channel) => (
      <Check name={channel} label={CHOICE_WORDS[channel](visit)} isOn={choice.channels[channel] === true} />
    ))}
    <Check name="sandbox" label="Of the sandbox too" isOn={choice.sandbox} />
    <Field
      name="from"
      label="From"
      type="time"
      value={choice.from}
      problem={problems.from}
      hint="What comes outside these hours waits until they begin. Leave both empty for all hours."
    />
    <Field name="until" label="Until" type="time" value={choice.until} problem={problems.until} />
    <Field
      name="time_zone"
      label="Time zone"
      required
      value={choice.timeZone}
      problem={problems.time_zone}
      hint="Such as Europe/Berlin."
      attributes={{ maxlength: "64", autocomplete: "off" }}
    />
    <button type="submit" class="primary">
      Save
    </button>
  </Form>
);

const channelsHere = ({ ctx }: Visit): readonly Channel[] =>
  CHANNELS.filter((channel) => ctx.notices[channel].send !== null);

const CHOICE_WORDS = {
  email: ({ user }) => `E-mail to ${user.email}`,
  push: () => "Push to your devices",
  messaging: () => "Messages to the chat that you have linked",
} as const satisfies Record<Channel, (visit: Visit) => string>;

const CHANNEL_WORDS = {
  email: "E-mail",
  push: "Push",
  messaging: "Messaging",
} as const satisfies Record<Channel, string>;

const Check = ({ name, label, isOn }: { name: string; label: string; isOn: boolean }) => (
  <label class="tick">
    <input type="checkbox" name={name} value="on" checked={isOn} /> {label}
  </label>
);

const Recent = ({ of }: { of: readonly SentNotice[] }) =>
  of.length === 0 ? (
    <Empty title="No notice yet">The first one comes when an escalation waits for a decision.</Empty>
  ) : (
    <Table
      label="The last notices to you"
      columns={["About", "Outcome", "Made", "By", "Answer"]}
      wide={["By", "Answer"]}
      rows={of.map((notice) => [
        aboutWords(notice),
        statusWords(notice),
        <Time at={notice.createdAt} />,
        CHANNEL_WORDS[notice.channel],
        notice.answer ?? "",
      ])}
    />
  );

const sinceWords = (hours: number): string => (hours === 0 ? "" : `, after ${hours} hours`);
const inMode = (mode: SentNotice["mode"]): string => (mode === "sandbox" ? " (sandbox)" : "");

function aboutWords({ about, mode }: SentNotice): string {
  switch (about.kind) {
    case "escalations": {
      const what = about.count === 1 ? "An escalation" : `${about.count} escalations`;
      return `${what}${sinceWords(about.waitedHours)}${inMode(mode)}`;
    }
    case "disputes":
      return `${about.count === 1 ? "A dispute" : `${about.count} disputes`}${sinceWords(about.waitedHours)}${inMode(mode)}`;
    case "events_lost":
      return `The endpoint ${about.webhookId} lost an event`;
    case "trouble":
      return `Trouble: ${about.name}`;
    case "password_reset":
      return "A reset link";
    case "invitation":
      return "Your invitation";
    case "new_sign_in":
      return "A sign-in from a new place";
    case "test":
      return "A test notice";
  }
}

const STATUS_WORDS = {
  pending: "waits",
  delivered: "delivered",
  failed: "failed, is tried again",
  exhausted: "failed for good",
  dropped: "not needed any more",
} as const satisfies Record<SentNotice["status"], string>;

const statusWords = ({ status, attempts }: SentNotice): string =>
  attempts > 1 ? `${STATUS_WORDS[status]}, ${attempts} attempts` : STATUS_WORDS[status];

export async function sendNotices(submission: Submission): Promise<Page | Redirect> {
  const { ctx, caller, fields } = submission;
  const choice: NoticeChoice = {
    channels: Object.fromEntries(
      channelsHere(submission).map((channel) => [channel, fields[channel] === "on"]),
    ),
    sandbox: fields.sandbox === "on",
    from: fields.from ?? "",
    until: fields.until ?? "",
    timeZone: fields.time_zone ?? "",
  };
  const chosen = await chooseNotices(ctx, caller, choice);
  return isRefusal(chosen)
    ? noticesPage(submission, { form: "choice", choice, refusal: chosen })
    : { to: `${PATH}?done=chosen` };
}

export async function sendTest(submission: Submission): Promise<Page | Redirect> {
  const made = await makeTestNotice(submission.ctx, submission.caller);
  return isRefusal(made)
    ? noticesPage(submission, { form: "test", refusal: made })
    : { to: `${PATH}?done=test` };
}

export async function sendDevice(submission: Submission): Promise<Page | Redirect> {
  const { ctx, caller, fields } = submission;
  const { endpoint = "", p256dh = "", auth = "", device_name: name = "" } = fields;
  const added = await addDevice(ctx, caller, { endpoint, p256dh, auth, name });
  return isRefusal(added)
    ? noticesPage(submission, { form: "devices", name, refusal: added })
    : { to: `${PATH}?done=device` };
}

export async function sendDeviceRemoval(submission: Submission): Promise<Page | Redirect> {
  const { ctx, caller, fields } = submission;
  const removed = await removeDevice(ctx, caller, fields.device ?? "");
  return isRefusal(removed)
    ? noticesPage(submission, { form: "devices", name: null, refusal: removed })
    : { to: `${PATH}?done=removed` };
}
