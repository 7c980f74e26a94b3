/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import type { Role } from "../../core/roles.ts";
import { issuePasswordReset } from "../../services/admin/password-resets.ts";
import { endSignInsOf } from "../../services/admin/sign-ins.ts";
import { removeUser, setUserRole } from "../../services/admin/users.ts";
import { type PersonDetail, readPerson } from "../../services/console/people.ts";
import { Card, Facts, Head, Notice } from "../parts/blocks.tsx";
import { Badge, Id, Text, Time } from "../parts/figures.tsx";
import { Choose, Form, type Problems } from "../parts/forms.tsx";
import { SignIns } from "../parts/sign-ins.tsx";
import { problemsOf } from "../problems.ts";
import type { Page, Redirect, Submission, Visit } from "../route.ts";
import { LastSignIn, linkPage, ROLE_WORDS } from "./people.tsx";

/** One person: the role, the sign-ins, and what the one who looks may do about them. */

type OfPerson = { readonly id: string };

const DONE: Readonly<Record<string, string>> = {
  role: "The role is changed. It holds from their next request on.",
  ended: "Those sign-ins are ended. They may sign in again.",
};

export const showPerson = (visit: Visit<OfPerson>) => personPage(visit, null);

async function personPage(visit: Visit<OfPerson>, refusal: Refusal | null): Promise<Page | Refusal> {
  const detail = await readPerson(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(detail)) return detail;
  const { person, may, signIns } = detail;
  const { user } = person;
  const done = DONE[visit.search.get("done") ?? ""];
  const problems = refusal ? problemsOf(refusal, ["role"]) : {};
  return {
    title: user.name,
    section: "people",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <div id="head" data-live="people">
          <Head
            title={
              <>
                <Text of={user.name} /> <Badge of={user.role} />
                {person.isInvited ? <Badge look="verifying" of="invited" /> : null}
              </>
            }
            about={<Text of={user.email} />}
            actions={
              <a class="button" href={`/console/audit-log?who=${user.id}`}>
                What they changed
              </a>
            }
          />
        </div>
        {done ? <Notice kind="done">{done}</Notice> : null}
        {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
        <div class="columns">
          <div id="about" data-live="people">
            <Card title="About">
              <Facts
                of={[
                  ["Id", <Id of={user.id} />],
                  ["May", ROLE_WORDS[user.role]],
                  ["Last sign-in", <LastSignIn isInvited={person.isInvited} at={person.lastSignInAt} />],
                  ["Passkeys", String(person.passkeys)],
                  ["Since", <Time at={user.createdAt} />],
                ]}
              />
            </Card>
            {may.manages ? (
              <Card title="Where they are signed in">
                <SignIns visit={visit} signIns={signIns} action={`/console/people/${user.id}/sign-out`} />
              </Card>
            ) : (
              <Notice kind="note">Only an owner manages admins and owners.</Notice>
            )}
          </div>
          <div id="powers" data-live="people">
            <Powers visit={visit} detail={detail} problems={problems} />
          </div>
        </div>
      </>
    ),
  };
}

type PowersProps = { visit: Visit; detail: PersonDetail; problems: Problems };

const Powers = ({ visit, detail, problems }: PowersProps) => {
  const { person, may } = detail;
  const path = `/console/people/${person.user.id}`;
  return (
    <>
      {may.manages ? (
        <Card title="Role">
          <Form by={visit} action={`${path}/role`} label="Role">
            <Choose
              name="role"
              label="New role"
              value={person.user.role}
              problem={problems.role}
              hint="Each role may also do what the ones before it may. A link that was made for them ends."
              choices={may.roles.map((role) => ({ value: role, words: role }))}
            />
            <button type="submit">Change the role</button>
          </Form>
        </Card>
      ) : null}
      <Card title={person.isInvited ? "Invitation" : "Password and passkeys"}>
        {may.resetsPassword ? (
          <>
            <p class="quiet">
              {person.isInvited
                ? "They have not chosen a password yet. A new link ends the one that you gave them."
                : "For somebody who forgot the password: a link by which they choose a new one, within an hour. They are signed out everywhere then, and a passkey that they add within 24 hours does not count for the threshold."}
            </p>
            <Form by={visit} action={`${path}/reset-link`} label="Link">
              <button type="submit">{person.isInvited ? "Make a new link" : "Make a reset link"}</button>
            </Form>
          </>
        ) : (
          <p class="quiet">
            A reset link is for lower roles only. On the machine itself{" "}
            <code>holdfast users reset-password {person.user.id}</code> makes one for anybody.
          </p>
        )}
        <p class="quiet">
          Lost passkeys are deleted on the machine itself:{" "}
          <code>holdfast users reset-passkeys {person.user.id}</code>
        </p>
      </Card>
      {may.manages ? (
        <Card title="Remove">
          <p class="quiet">They are signed out everywhere, at once. What they did stays in the records.</p>
          <a class="button danger" href={`${path}/remove`} data-dialog>
            Remove this person
          </a>
        </Card>
      ) : null}
    </>
  );
};

/** Does what a form asks, and shows the page again where it was refused. */
async function afterwards(
  submission: Submission<OfPerson>,
  answer: object | Refusal,
  done: string,
): Promise<Page | Redirect | Refusal> {
  if (isRefusal(answer)) return personPage(submission, answer);
  return { to: `/console/people/${submission.params.id}?done=${done}` };
}

export async function sendRole(submission: Submission<OfPerson>) {
  const { ctx, caller, fields, params } = submission;
  // The verb refuses text that is not a role.
  const answer = await setUserRole(ctx, caller, { user_id: params.id, role: fields.role as Role });
  // An admin who gave up the role sees no people any more.
  if (!isRefusal(answer) && params.id === caller.userId) return { to: "/console" };
  return afterwards(submission, answer, "role");
}

export async function sendSignOutOf(submission: Submission<OfPerson>) {
  const { ctx, caller, client, fields, params } = submission;
  const { sign_in: signInId } = fields;
  const input = { user_id: params.id, ...(signInId && { sign_in_id: signInId }) };
  return afterwards(submission, await endSignInsOf(ctx, caller, input, client), "ended");
}

export async function sendResetLink(submission: Submission<OfPerson>): Promise<Page | Refusal> {
  const { ctx, caller, params } = submission;
  const link = await issuePasswordReset(ctx, caller, { user_id: params.id });
  if (isRefusal(link)) return personPage(submission, link);
  const detail = await readPerson(ctx, caller, params.id);
  if (isRefusal(detail)) return detail;
  return linkPage(submission, {
    to: detail.person.user.email,
    title: "A link to a new password",
    about: "Links that were made before no longer work.",
    link,
    back: `/console/people/${params.id}`,
  });
}

export const showRemoval = (visit: Visit<OfPerson>) => removalPage(visit, null);

async function removalPage(visit: Visit<OfPerson>, refusal: Refusal | null): Promise<Page | Refusal> {
  const detail = await readPerson(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(detail)) return detail;
  const { person, signIns } = detail;
  const path = `/console/people/${person.user.id}`;
  const title = `Remove ${person.user.name}?`;
  return {
    title,
    section: "people",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <div id="confirm">
        <Head title={<Text of={title} />} />
        {refusal ? <Notice kind="problem">{refusal.message}</Notice> : null}
        <p>
          <Text of={person.user.email} /> cannot sign in any more. Sign-ins that end now: {signIns.length}.
          Passkeys that are deleted: {person.passkeys}. No money moves, and the API keys of agents stay.
        </p>
        <p class="hint">It cannot be undone. The same address may be invited again, as somebody new.</p>
        <Form by={visit} action={`${path}/remove`} label="Confirm">
          <button type="submit" class="danger wide">
            Remove this person
          </button>
        </Form>
        <a href={path} data-cancel>
          Leave it as it is
        </a>
      </div>
    ),
  };
}

export async function sendRemoval(submission: Submission<OfPerson>) {
  const { ctx, caller, params } = submission;
  const answer = await removeUser(ctx, caller, { user_id: params.id });
  return isRefusal(answer) ? removalPage(submission, answer) : { to: "/console/people?done=removed" };
}
