/** @jsxImportSource hono/jsx */
import { sha256 } from "../../core/canonical.ts";
import type { PushSubscription } from "../../core/push.ts";
import { PUSH_WORKER } from "../own-files.ts";
import type { Visit } from "../route.ts";
import { Empty, Notice } from "./blocks.tsx";
import { Text, Time } from "./figures.tsx";
import { Field, Form, type Problems } from "./forms.tsx";

/** Where the forms are sent. */
const DEVICES = "/console/settings/notices/devices";

type Props = {
  readonly visit: Visit;
  readonly devices: readonly PushSubscription[];
  /** The name that was tried for this one. */
  readonly name: string | null;
  readonly problems: Problems;
};

/** The browsers in which a person is notified. Only a script can ask a browser for that, so without one it says so. */
export const Devices = ({ visit, devices, name, problems }: Props) => (
  <>
    {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
    {devices.length === 0 ? (
      <Empty title="No device yet">
        <p>A device that you add shows notices also while no page of the console is open.</p>
      </Empty>
    ) : (
      <ul class="steps" aria-label="Your devices">
        {devices.map((device) => (
          <Device visit={visit} device={device} />
        ))}
      </ul>
    )}
    <noscript>
      <p class="notice note">A device can be added only where JavaScript is on.</p>
    </noscript>
    <p class="notice note" data-no-push hidden>
      This browser cannot be notified here. It needs https, and an iPhone or iPad needs this page on its home
      screen.
    </p>
    <Form
      by={visit}
      action={DEVICES}
      label="Add this device"
      attributes={{
        "data-subscribe": visit.ctx.webPush.publicKey,
        "data-worker": PUSH_WORKER.path,
        hidden: "",
      }}
    >
      <p class="notice problem" role="alert" data-problem hidden />
      <input type="hidden" name="endpoint" value="" />
      <input type="hidden" name="p256dh" value="" />
      <input type="hidden" name="auth" value="" />
      <Field
        name="device_name"
        label="Name of this device"
        required
        value={name ?? nameOf(visit.client.agent)}
        problem={problems.device_name}
        attributes={{ maxlength: "200", autocomplete: "off" }}
      />
      <button type="submit">Notify me on this device</button>
    </Form>
  </>
);

const Device = ({ visit, device }: { visit: Visit; device: PushSubscription }) => (
  <li data-device={sha256(device.endpoint)}>
    <div>
      <Text of={device.name} />
      <span class="badge pass" data-this-device hidden>
        this one
      </span>
      <div class="quiet">
        by {new URL(device.endpoint).host} · added <Time at={device.createdAt} /> ·{" "}
        {device.deliveredAt === null ? (
          "not reached yet"
        ) : (
          <>
            last reached <Time at={device.deliveredAt} />
          </>
        )}
      </div>
    </div>
    <Form by={visit} action={`${DEVICES}/remove`} class="plain-form" label={`Remove ${device.name}`}>
      <input type="hidden" name="device" value={device.id} />
      <button type="submit">Remove</button>
    </Form>
  </li>
);

const BROWSERS = { Edg: "Edge", OPR: "Opera", Firefox: "Firefox", Chrome: "Chrome", Safari: "Safari" };
const SYSTEMS = ["iPhone", "iPad", "Android", "Windows", "Mac", "Linux"];

/** What a browser is called at first, by how it names itself. */
function nameOf(agent: string): string {
  const [, browser = "A browser"] = Object.entries(BROWSERS).find(([mark]) => agent.includes(mark)) ?? [];
  const system = SYSTEMS.find((name) => agent.includes(name));
  return system === undefined ? browser : `${browser} on ${system}`;
}
