/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuseField, statusOf } from "../../core/errors.ts";
import { displayAmount, parseUnits } from "../../core/money.ts";
import type { Organisation } from "../../core/organisation.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import {
  setKillSwitch,
  setMessagingDecisions,
  setPasskeyThreshold,
  setReceiptSpecs,
  setSecondFactor,
} from "../../services/admin/switches.ts";
import type { InstanceState } from "../instance-state.ts";
import { Card, Facts, Head, Notice, UndoLink } from "../parts/blocks.tsx";
import { Amount, Badge, Id, Text } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import { OnlyFor, State, Turn } from "../parts/switches.tsx";
import { problemsOf } from "../problems.ts";
import type { Page, Redirect, Submission, Visit } from "../route.ts";
import { InstanceCard, readShownInstance, type ShownInstance } from "./instance.tsx";
import type { ToState } from "./kill-switch.tsx";

/** The organisation's switches, and what the instance says of itself. */

const SECOND_FACTOR = "/console/settings/second-factor";
const RECEIPT_SPECS = "/console/settings/receipt-specs";
const DECISIONS = "/console/settings/messaging-decisions";

const DONE: Readonly<Record<string, string>> = {
  kill_on: "The kill switch is on: no new warrant opens.",
  kill_off: "The kill switch is off: warrants open again.",
  threshold: "The passkey threshold is changed. It holds from the next decision on.",
  factor: "The second factor is changed.",
  decisions: "Whether escalations are decided in chats is changed. It holds from the next decision on.",
  specs: "What receipts show is changed, for all warrants.",
};

export const showSettings = (instance: InstanceState | null) => (visit: Visit) =>
  settingsPage(visit, instance, null);

/** Null where nothing was refused. */
type Tried = { readonly form: "threshold" | "switch"; readonly refusal: Refusal } | null;

async function settingsPage(
  visit: Visit,
  instance: InstanceState | null,
  tried: Tried,
): Promise<Page | Refusal> {
  const shown = await readShownInstance(visit, instance);
  if (isRefusal(shown)) return shown;
  const done = DONE[visit.search.get("done") ?? ""];
  return {
    title: "Settings",
    section: "settings",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Settings"
          actions={
            <>
              <a class="button" href="/console/settings/notices">
                Your notices
              </a>
              <a class="button" href="/console/account">
                Your account
              </a>
            </>
          }
        />
        {done ? (
          <Notice kind="done">
            {done} <Undo visit={visit} />
          </Notice>
        ) : null}
        {tried?.form === "switch" ? <Notice kind="problem">{tried.refusal.message}</Notice> : null}
        <OrganisationCards visit={visit} tried={tried} />
        {shown ? <Instance shown={shown} /> : null}
      </>
    ),
  };
}

const UNDO = { words: "Undo", look: "link" } as const;

/** The way back from the switch that was just turned, while it is as it was left. */
const Undo = ({ visit }: { visit: Visit }) => {
  const { organisation } = visit.around;
  switch (visit.search.get("done")) {
    case "kill_on":
      return <UndoLink href={organisation.killSwitch ? "/console/settings/kill-switch/off" : null} />;
    case "kill_off":
      return <UndoLink href={organisation.killSwitch ? null : "/console/settings/kill-switch/on"} />;
    case "factor":
      return <Turn visit={visit} path={SECOND_FACTOR} isOn={organisation.secondFactor} {...UNDO} />;
    case "specs":
      return <Turn visit={visit} path={RECEIPT_SPECS} isOn={organisation.hidesSpecs} {...UNDO} />;
    case "decisions":
      return <Turn visit={visit} path={DECISIONS} isOn={organisation.messagingDecisions} {...UNDO} />;
    default:
      return null;
  }
};

const Instance = ({ shown }: { shown: ShownInstance }) => (
  <>
    <h2 class="section-title">This instance</h2>
    <InstanceCard shown={shown} />
  </>
);

const OrganisationCards = ({ visit, tried }: { visit: Visit; tried: Tried }) => {
  const { organisation } = visit.around;
  const isAdmin = roleIsAtLeast(visit.caller.role, "admin");
  const isOwner = roleIsAtLeast(visit.caller.role, "owner");
  return (
    <>
      <h2 class="section-title">
        <Text of={organisation.name} />
      </h2>
      <div id="organisation" class="halves" data-live="organisation">
        <KillSwitch organisation={organisation} isAdmin={isAdmin} />
        <Threshold visit={visit} organisation={organisation} isOwner={isOwner} tried={tried} />
        <SecondFactor visit={visit} organisation={organisation} isOwner={isOwner} />
        <ReceiptSpecs visit={visit} organisation={organisation} isAdmin={isAdmin} />
        {visit.ctx.messaging === null && !organisation.messagingDecisions ? null : (
          <MessagingDecisions visit={visit} organisation={organisation} isAdmin={isAdmin} />
        )}
        <Card title="About">
          <Facts
            of={[
              ["Organisation", <Id of={organisation.id} />],
              ["You are in", visit.caller.mode === "live" ? "live" : "the sandbox, where no money is real"],
            ]}
          />
          <p class="hint">
            Both modes have their own agents, keys, money and warrants; the switch at the side moves between
            them. People, policies, verifiers and schemas are the same in both.
          </p>
          {isAdmin ? (
            <p>
              <a href="/console/people">People</a> · <a href="/console/audit-log">Audit log</a> ·{" "}
              <a href="/console/welcome">First steps</a>
            </p>
          ) : null}
        </Card>
      </div>
    </>
  );
};

/** Leads to what the documentation says of a switch. */
const More = ({ at, about }: { at: string; about: string }) => (
  <a href={`/docs/${at}`}>
    More<span class="hidden"> about {about}</span>
  </a>
);

const KillSwitch = ({ organisation, isAdmin }: { organisation: Organisation; isAdmin: boolean }) => (
  <Card title="Kill switch" aside={<State isOn={organisation.killSwitch} />}>
    <p class="quiet">
      While it is on, no new warrant opens, in live and in the sandbox. Open ones go on.{" "}
      <More at="people#the-kill-switch" about="the kill switch" />
    </p>
    {isAdmin ? (
      <a
        class={`button ${organisation.killSwitch ? "" : "danger"}`}
        href={`/console/settings/kill-switch/${organisation.killSwitch ? "off" : "on"}`}
        data-dialog
      >
        Turn it {organisation.killSwitch ? "off" : "on"}
      </a>
    ) : (
      <OnlyFor who="an admin or owner" />
    )}
  </Card>
);

type OwnersProps = { visit: Visit; organisation: Organisation; isOwner: boolean };

const Threshold = ({ visit, organisation, isOwner, tried }: OwnersProps & { tried: Tried }) => {
  const { passkeyThreshold: threshold } = organisation;
  const current = threshold === null ? "" : displayAmount(threshold, "USDC").replace(/ USDC$/, "");
  const problems = tried?.form === "threshold" ? problemsOf(tried.refusal, ["amount"]) : {};
  return (
    <Card
      title="Passkey threshold"
      aside={threshold === null ? <State isOn={false} /> : <Amount of={threshold} asset="USDC" />}
    >
      <p class="quiet">
        Above it, money leaves only with a person's passkey: a policy's release waits for a person, and that
        person signs. While it is set, assets other than USDC are refused.{" "}
        <More at="people#the-threshold" about="the threshold" />
      </p>
      {isOwner ? (
        <Form
          by={visit}
          action="/console/settings/passkey-threshold"
          label="Passkey threshold"
          problem={problems[""]}
        >
          <Field
            name="amount"
            label="Amount in USDC"
            value={visit.fields.amount ?? current}
            problem={problems.amount}
            hint="In units, such as 250.00. Leave it empty to turn the threshold off."
            attributes={{ inputmode: "decimal", autocomplete: "off" }}
          />
          <button type="submit">Set the threshold</button>
        </Form>
      ) : (
        <OnlyFor who="an owner" />
      )}
    </Card>
  );
};

const SecondFactor = ({ visit, organisation, isOwner }: OwnersProps) => (
  <Card title="Second factor" aside={<State isOn={organisation.secondFactor} />}>
    <p class="quiet">
      While it is on, operators, admins and owners prove a passkey before anything else, also where they are
      signed in already. Who has none yet can only add one. You are asked too.{" "}
      <More at="people#the-second-factor" about="the second factor" />
    </p>
    {isOwner ? (
      <Turn
        visit={visit}
        path={SECOND_FACTOR}
        isOn={organisation.secondFactor}
        words={organisation.secondFactor ? "Ask for passwords alone" : "Ask for passkeys too"}
      />
    ) : (
      <OnlyFor who="an owner" />
    )}
  </Card>
);

type AdminsProps = { visit: Visit; organisation: Organisation; isAdmin: boolean };

const MessagingDecisions = ({ visit, organisation, isAdmin }: AdminsProps) => (
  <Card title="Decisions in chats" aside={<State isOn={organisation.messagingDecisions} />}>
    <p class="quiet">
      While it is on, people release and refund escalations by buttons in the chat that they have linked, with
      the role that they have. Not while the second factor is on, and not from the passkey threshold on.{" "}
      <More at="notices#the-messaging-bot" about="decisions in chats" />
    </p>
    {isAdmin ? (
      <Turn
        visit={visit}
        path={DECISIONS}
        isOn={organisation.messagingDecisions}
        words={organisation.messagingDecisions ? "Decide at the console alone" : "Allow decisions in chats"}
      />
    ) : (
      <OnlyFor who="an admin or owner" />
    )}
  </Card>
);

const ReceiptSpecs = ({ visit, organisation, isAdmin }: AdminsProps) => (
  <Card title="Specs on receipts" aside={<Badge of={organisation.hidesSpecs ? "hidden" : "shown"} />}>
    <p class="quiet">
      Receipts are public. Where specs are hidden, all receipts show their hashes alone, at once; copies that
      others made stay as they are. <More at="security#receipts" about="receipts" />
    </p>
    {isAdmin ? (
      <Turn
        visit={visit}
        path={RECEIPT_SPECS}
        isOn={organisation.hidesSpecs}
        words={organisation.hidesSpecs ? "Show the specs" : "Hide the specs"}
      />
    ) : (
      <OnlyFor who="an admin or owner" />
    )}
  </Card>
);

/** What follows a switch: the page, which says what was done or why not. */
type Afterwards = (
  submission: Submission,
  answer: object | Refusal,
  done: string,
  form?: "threshold",
) => Promise<Page | Redirect | Refusal>;

const afterwards =
  (instance: InstanceState | null): Afterwards =>
  async (submission, answer, done, form) =>
    isRefusal(answer)
      ? settingsPage(submission, instance, { form: form ?? "switch", refusal: answer })
      : { to: `/console/settings?done=${done}` };

export const sendKillSwitch = (instance: InstanceState | null) => async (submission: Submission<ToState>) => {
  const { ctx, caller, params } = submission;
  if (params.state !== "on" && params.state !== "off") return { to: "/console/settings" };
  const isOn = params.state === "on";
  const answer = await setKillSwitch(ctx, caller, { organisation_id: caller.organisationId, on: isOn });
  return afterwards(instance)(submission, answer, isOn ? "kill_on" : "kill_off");
};

export const sendThreshold = (instance: InstanceState | null) => async (submission: Submission) => {
  const { ctx, caller, fields } = submission;
  const text = (fields.amount ?? "").trim();
  const amount = text === "" ? null : parseUnits(text, "USDC");
  const answer =
    text !== "" && amount === null
      ? refuseField("amount", "must be an amount of USDC, such as 250.00, or empty")
      : await setPasskeyThreshold(ctx, caller, {
          organisation_id: caller.organisationId,
          amount: amount?.toString() ?? null,
        });
  return afterwards(instance)(submission, answer, "threshold", "threshold");
};

export const sendSecondFactor = (instance: InstanceState | null) => async (submission: Submission) => {
  const { ctx, caller, fields } = submission;
  const input = { organisation_id: caller.organisationId, on: fields.to === "on" };
  return afterwards(instance)(submission, await setSecondFactor(ctx, caller, input), "factor");
};

export const sendMessagingDecisions = (instance: InstanceState | null) => async (submission: Submission) => {
  const { ctx, caller, fields } = submission;
  const input = { organisation_id: caller.organisationId, on: fields.to === "on" };
  return afterwards(instance)(submission, await setMessagingDecisions(ctx, caller, input), "decisions");
};

export const sendReceiptSpecs = (instance: InstanceState | null) => async (submission: Submission) => {
  const { ctx, caller, fields } = submission;
  const input = { organisation_id: caller.organisationId, hidden: fields.to === "on" };
  return afterwards(instance)(submission, await setReceiptSpecs(ctx, caller, input), "specs");
};
