/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { changeOwnName } from "../../services/auth/own-name.ts";
import { listPasskeys } from "../../services/auth/passkeys/list.ts";
import { removePasskey } from "../../services/auth/passkeys/remove.ts";
import { changePassword } from "../../services/auth/password.ts";
import { signOutEverywhere } from "../../services/auth/sign-in.ts";
import { endOwnSignIn, listOwnSignIns } from "../../services/auth/sign-ins.ts";
import { Card, Empty, Head, Notice } from "../parts/blocks.tsx";
import { Confirmation } from "../parts/confirmation.tsx";
import { Badge, Text, Time } from "../parts/figures.tsx";
import { Form, type Problems } from "../parts/forms.tsx";
import { NameField, NewPasswordField, PasswordField } from "../parts/name-fields.tsx";
import { AddPasskey } from "../parts/passkeys.tsx";
import { SignIns } from "../parts/sign-ins.tsx";
import { problemsOf } from "../problems.ts";
import type { Page, Redirect, Submission, Visit } from "../route.ts";

/** One's own account: name, passkeys, password, and where one is signed in. */

const DONE: Readonly<Record<string, string>> = {
  name: "Your name is changed.",
  password: "Your password is changed; everywhere else you are signed out.",
  ended: "That sign-in is ended.",
  passkey: "The passkey is removed.",
};

/** The form that was refused, and why. */
type Tried = { readonly form: "name" | "password" | "signIns"; readonly refusal: Refusal };

export const showAccount = (visit: Visit) => accountPage(visit, null);

async function accountPage(visit: Visit, tried: Tried | null): Promise<Page | Refusal> {
  const passkeys = await listPasskeys(visit.ctx, visit.caller);
  if (isRefusal(passkeys)) return passkeys;
  const signIns = await listOwnSignIns(visit.ctx, visit.caller);
  if (isRefusal(signIns)) return signIns;
  const done = DONE[visit.search.get("done") ?? ""];
  const problemsIn = (form: Tried["form"]): Problems => {
    if (tried?.form !== form) return {};
    const problems = problemsOf(tried.refusal, ["name", "new_password"]);
    // What is wrong there is the password that was asked for again.
    return form === "password" && tried.refusal.refused === "not_authenticated"
      ? { current_password: tried.refusal.message }
      : problems;
  };
  return {
    title: "Your account",
    section: null,
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <>
        <Head title="Your account" about={<Text of={visit.user.email} />} />
        {done ? <Notice kind="done">{done}</Notice> : null}
        <div class="columns">
          <div>
            <Card title="Passkeys">
              <Passkeys of={passkeys.data} />
              <AddPasskey baseUrl={visit.ctx.baseUrl} />
            </Card>
            <Card title="Where you are signed in">
              <p class="quiet">End what you do not know, and change your password then.</p>
              {problemsIn("signIns")[""] ? <Notice kind="problem">{problemsIn("signIns")[""]}</Notice> : null}
              <SignIns visit={visit} signIns={signIns.data} action="/console/account/sign-out" />
            </Card>
          </div>
          <div>
            <OwnName visit={visit} problems={problemsIn("name")} />
            <OwnPassword visit={visit} problems={problemsIn("password")} />
          </div>
        </div>
      </>
    ),
  };
}

type PasskeyResource = Exclude<Awaited<ReturnType<typeof listPasskeys>>, Refusal>["data"][number];

const Passkeys = ({ of }: { of: readonly PasskeyResource[] }) =>
  of.length === 0 ? (
    <Empty title="You have none yet">
      <p>A passkey signs you in, and signs what you decide above the organisation's threshold.</p>
    </Empty>
  ) : (
    <ul class="steps">
      {of.map((passkey) => (
        <li>
          <div>
            <Text of={passkey.name} />
            {passkey.counts_for_threshold ? null : (
              <Badge look="escalated" of="does not count for the threshold" />
            )}
            <div class="quiet">
              added <Time at={Date.parse(passkey.created_at)} /> ·{" "}
              {passkey.last_used_at === null ? (
                "not used yet"
              ) : (
                <>
                  last used <Time at={Date.parse(passkey.last_used_at)} />
                </>
              )}
            </div>
          </div>
          <a
            class="button"
            href={`/console/account/remove-passkey?passkey=${encodeURIComponent(passkey.id)}`}
            data-dialog
          >
            Remove
          </a>
        </li>
      ))}
    </ul>
  );

const OwnName = ({ visit, problems }: { visit: Visit; problems: Problems }) => (
  <Card title="Name">
    <Form by={visit} action="/console/account/name" label="Name" problem={problems[""]}>
      <NameField
        label="What you are called"
        value={visit.fields.name ?? visit.user.name}
        problem={problems.name}
        autocomplete="name"
      />
      <button type="submit">Change the name</button>
    </Form>
  </Card>
);

const OwnPassword = ({ visit, problems }: { visit: Visit; problems: Problems }) => (
  <Card title="Password">
    <Form by={visit} action="/console/account/password" label="Password" problem={problems[""]}>
      <PasswordField name="current_password" label="Current password" problem={problems.current_password} />
      <NewPasswordField
        name="new_password"
        label="New password"
        problem={problems.new_password}
        hint="At least 12 characters, and hard to guess. Everywhere else you are signed out then."
      />
      <button type="submit">Change the password</button>
    </Form>
  </Card>
);

export async function sendOwnName(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const answer = await changeOwnName(ctx, caller, (fields.name ?? "").trim());
  if (isRefusal(answer)) return accountPage(submission, { form: "name", refusal: answer });
  return { to: "/console/account?done=name" };
}

export async function sendOwnPassword(submission: Submission) {
  const { ctx, signedIn, client, fields } = submission;
  const { current_password = "", new_password = "" } = fields;
  const refusal = await changePassword(ctx, signedIn, { current_password, new_password }, client);
  if (refusal) return accountPage(submission, { form: "password", refusal });
  return { to: "/console/account?done=password" };
}

export async function sendOwnSignOut(submission: Submission): Promise<Page | Redirect | Refusal> {
  const { ctx, caller, client, user, fields } = submission;
  if (!fields.sign_in) {
    await signOutEverywhere(ctx, user, client);
    return { to: "/console/sign-in", session: null };
  }
  const ended = await endOwnSignIn(ctx, caller, fields.sign_in, client);
  if (isRefusal(ended)) return accountPage(submission, { form: "signIns", refusal: ended });
  return { to: "/console/account?done=ended" };
}

export const showPasskeyRemoval = (visit: Visit) =>
  passkeyRemovalPage(visit, visit.search.get("passkey") ?? "", null);

async function passkeyRemovalPage(
  visit: Visit,
  id: string,
  refusal: Refusal | null,
): Promise<Page | Redirect | Refusal> {
  const passkeys = await listPasskeys(visit.ctx, visit.caller);
  if (isRefusal(passkeys)) return passkeys;
  const passkey = passkeys.data.find((one) => one.id === id);
  if (!passkey) return { to: "/console/account" };
  const title = `Remove the passkey “${passkey.name}”?`;
  return {
    title,
    section: null,
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation title={<Text of={title} />} back="/console/account">
        <p>
          It signs you in no more, and signs no decision. No money moves.
          {passkeys.data.length === 1
            ? " It is your last one: above the threshold you can decide nothing until you add another."
            : null}
        </p>
        <Form by={visit} action="/console/account/remove-passkey" label="Confirm">
          <input type="hidden" name="passkey" value={id} />
          <PasswordField label="Your password" problem={refusal?.message} />
          <button type="submit" class="danger wide">
            Remove it
          </button>
        </Form>
      </Confirmation>
    ),
  };
}

export async function sendPasskeyRemoval(submission: Submission) {
  const { ctx, caller, client, fields } = submission;
  const { passkey: id = "", password = "" } = fields;
  const refusal = await removePasskey(ctx, caller, { id, password }, client);
  return refusal ? passkeyRemovalPage(submission, id, refusal) : { to: "/console/account?done=passkey" };
}
