/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { ROLES, type Role } from "../../core/roles.ts";
import { inviteUser } from "../../services/admin/invitations.ts";
import { listPeople, type Person, rolesGivenBy } from "../../services/console/people.ts";
import { Card, Empty, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { Badge, Line, Text, Time } from "../parts/figures.tsx";
import { Choose, Form } from "../parts/forms.tsx";
import type { Markup } from "../parts/markup.ts";
import { EmailField, NameField } from "../parts/name-fields.tsx";
import { Secret } from "../parts/secret.tsx";
import { problemsOf } from "../problems.ts";
import type { Page, Submission, Visit } from "../route.ts";

/** The people of the organisation, and how somebody is invited. */

/** What each role may do, besides what the one before may. */
export const ROLE_WORDS: Readonly<Record<Role, string>> = {
  viewer: "reads everything",
  operator: "opens, verifies and settles warrants, decides escalations, pauses agents",
  admin: "manages agents, keys, policies, money, the kill switch, and people below admin",
  owner: "manages everybody, the passkey threshold and the second factor",
};

const roleChoices = (roles: readonly Role[]) =>
  roles.map((role) => ({ value: role, words: `${role}: ${ROLE_WORDS[role]}` }));

export async function showPeople(visit: Visit): Promise<Page | Refusal> {
  const after = visit.search.get("after") || null;
  const listed = await listPeople(visit.ctx, visit.caller, after);
  if (isRefusal(listed)) return listed;
  const { people, hasMore } = listed;
  const last = people.at(-1);
  return {
    title: "People",
    section: "people",
    content: (
      <>
        <Head
          title="People"
          about="Who signs in to this organisation. Agents have API keys, and are not here."
          actions={
            <>
              <a class="button" href="/console/audit-log">
                Audit log
              </a>
              <a class="button primary" href="/console/people/new">
                Invite somebody
              </a>
            </>
          }
        />
        {visit.search.get("done") === "removed" ? (
          <Notice kind="done">They are removed, and signed out everywhere.</Notice>
        ) : null}
        <div id="people" data-live="people">
          <Card>
            {people.length === 0 ? (
              <Empty title="Nobody is here">
                <p>
                  These are all. <a href="/console/people">Back to the first page</a>
                </p>
              </Empty>
            ) : (
              <Table
                label="People"
                columns={["Name", "Role", "E-mail", "Last sign-in", "Passkeys"]}
                wide={["Passkeys"]}
                numbers={["Passkeys"]}
                rows={people.map((person) => rowOf(person, visit.user.id))}
              />
            )}
            <Pager
              newer={after === null ? null : "/console/people"}
              older={hasMore && last ? `/console/people?after=${last.user.id}` : null}
            />
          </Card>
        </div>
      </>
    ),
  };
}

const rowOf = ({ user, isInvited, passkeys, lastSignInAt }: Person, ownId: string): readonly Markup[] => [
  <>
    <a href={`/console/people/${user.id}`}>
      <Line of={user.name} />
    </a>
    {user.id === ownId ? <span class="quiet"> (you)</span> : null}
  </>,
  <Badge of={user.role} />,
  <Line of={user.email} />,
  <LastSignIn isInvited={isInvited} at={lastSignInAt} />,
  String(passkeys),
];

export const LastSignIn = ({ isInvited, at }: { isInvited: boolean; at: number | null }) => {
  if (isInvited) return <Badge look="verifying" of="invited" />;
  return at === null ? <span class="quiet">not lately</span> : <Time at={at} />;
};

type Fields = Readonly<Record<string, string>>;

export const showInvitation = (visit: Visit): Promise<Page> => invitationPage(visit, {}, null);

async function invitationPage(visit: Visit, fields: Fields, refusal: Refusal | null): Promise<Page> {
  const problems = refusal ? problemsOf(refusal, ["email", "name", "role"]) : {};
  return {
    title: "Invite somebody",
    section: "people",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Invite somebody"
          about={
            hasMail(visit)
              ? "They get a mail with a link, and you see the link too. By it they choose their password, which nobody else ever knows."
              : "You get a link to hand over. By it they choose their password, which nobody else ever knows."
          }
        />
        <div class="halves">
          <Card>
            <Form by={visit} action="/console/people/new" label="Invite somebody" problem={problems[""]}>
              <NameField value={fields.name} problem={problems.name} />
              <EmailField
                value={fields.email}
                problem={problems.email}
                hint={
                  hasMail(visit)
                    ? "They sign in with it, and the invitation goes there."
                    : "They sign in with it. This instance has no mail server, so nothing is sent there."
                }
              />
              <Choose
                name="role"
                label="Role"
                value={fields.role ?? "viewer"}
                problem={problems.role}
                hint="Each role may also do what the ones before it may. You can change it later."
                choices={roleChoices(rolesGivenBy(visit.caller))}
              />
              <button type="submit" class="primary wide">
                Make the invitation
              </button>
            </Form>
          </Card>
          <Card title="Who may do what">
            <dl class="facts">
              {ROLES.map((role) => (
                <div>
                  <dt>{role}</dt>
                  <dd>{ROLE_WORDS[role]}</dd>
                </div>
              ))}
            </dl>
            <p class="hint">
              <a href="/docs/people">People and authority</a>
            </p>
          </Card>
        </div>
      </>
    ),
  };
}

/** Whether links are mailed, besides being shown. */
const hasMail = ({ ctx }: Pick<Visit, "ctx">): boolean => ctx.notices.email.send !== null;

export async function sendInvitation(submission: Submission): Promise<Page> {
  const { ctx, caller, fields } = submission;
  const invited = await inviteUser(ctx, caller, {
    organisation_id: caller.organisationId,
    email: fields.email ?? "",
    name: (fields.name ?? "").trim(),
    // The verb refuses what is no role.
    role: fields.role as Role,
  });
  if (isRefusal(invited)) return invitationPage(submission, fields, invited);
  const { user, link } = invited;
  return linkPage(submission, {
    to: user.email,
    title: `${user.name} is invited`,
    about: `As ${user.role}. They choose a password by this link, and then sign in.`,
    link,
    back: `/console/people/${user.id}`,
  });
}

/** Shows a one-time link. It is the answer to a form, so no address shows it again. */
export const linkPage = (
  by: Pick<Visit, "ctx">,
  {
    to,
    title,
    about,
    link,
    back,
  }: {
    /** Whose link it is: their e-mail. */
    to: string;
    title: string;
    about: string;
    link: { readonly url: string; readonly expires_at: string };
    back: string;
  },
): Page => ({
  title,
  section: "people",
  hasSecret: true,
  content: (
    <>
      <Head title={<Text of={title} />} about={about} />
      <Card>
        <Notice kind="note">
          {hasMail(by) ? (
            <>
              It is on its way to <Text of={to} /> by mail. Whoever has the link can choose the password, so
              hand it over yourself only where nobody else reads it.
            </>
          ) : (
            <>
              This instance has no mail server, so <Text of={to} /> hears nothing of it: copy the link, and
              hand it over where nobody else reads it, such as in person or in an encrypted message. Whoever
              has it can choose the password.
            </>
          )}
        </Notice>
        <Secret label="The link" of={link.url} />
        <p class="hint">
          It is good once, until <Time at={Date.parse(link.expires_at)} />. A newer link ends it.
        </p>
        <p>
          <a href={back}>Their page</a> · <a href="/console/people">All people</a>
        </p>
      </Card>
    </>
  ),
});
