/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { displayCode, type MessagingAccount } from "../../core/messaging.ts";
import { makeLinkCode, type NewCode, readOwnChat, unlinkOwnChat } from "../../services/messaging/link.ts";
import { Card, Facts, Head, Notice } from "../parts/blocks.tsx";
import { Badge, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import { Secret } from "../parts/secret.tsx";
import type { Page, Submission, Visit } from "../route.ts";

/** A person's chat with the messaging bot: how it is linked and unlinked. */

const NOTICES = "/console/settings/notices";
const PATH = `${NOTICES}/chat`;

/** What the page of notices shows of it: nothing, where this instance has no bot. */
export async function chatCardOf({ ctx, caller }: Visit) {
  if (ctx.messaging === null) return null;
  const account = await readOwnChat(ctx, caller);
  return (
    <Card
      title="Your chat"
      aside={<Badge look={account ? "pass" : ""} of={account ? "linked" : "not linked"} />}
    >
      {account ? (
        <LinkedChat by={{ ctx, caller }} account={account} />
      ) : (
        <>
          <p class="quiet">
            Notices can come to a chat with this instance's bot. Where your organisation allows it, you decide
            escalations there too.
          </p>
          <a class="button" href={PATH}>
            Link a chat
          </a>
        </>
      )}
    </Card>
  );
}

type LinkedProps = { by: Pick<Visit, "ctx" | "caller">; account: MessagingAccount };

const LinkedChat = ({ by, account }: LinkedProps) => (
  <>
    <Facts
      of={[
        ["Chat", account.username === null ? account.chatId : <Text of={`@${account.username}`} />],
        ["Linked", <Time at={account.linkedAt} />],
      ]}
    />
    <p class="hint">
      Signing out everywhere, or a new password, unlinks it too; and so does /stop, sent in the chat.
    </p>
    <Form by={by} action={`${PATH}/unlink`} label="Unlink the chat">
      <button type="submit">Unlink it</button>
    </Form>
  </>
);

export const showChat = async (visit: Visit): Promise<Page> => linkPage(visit, null);

function linkPage(visit: Visit, refusal: Refusal | null): Page {
  const { messaging } = visit.ctx;
  return {
    title: "Link a chat",
    section: null,
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Link a chat"
          about="Whoever is in the chat hears what you hear, and may decide what you may decide there."
        />
        <Card>
          {messaging?.hears ? (
            <LinkForm visit={visit} refusal={refusal} />
          ) : (
            <Notice kind="note">
              {messaging ? (
                <>
                  The bot of this instance hears nothing, so no chat can be linked. Its operator sets{" "}
                  <a href="/docs/configuration#secrets">HOLDFAST_MESSAGING_SECRET</a>.
                </>
              ) : (
                <>
                  This instance has no bot. Its operator sets{" "}
                  <a href="/docs/configuration#secrets">HOLDFAST_MESSAGING_TOKEN</a>.
                </>
              )}
            </Notice>
          )}
          <p>
            <a href={NOTICES}>Back to the notices</a>
          </p>
        </Card>
      </>
    ),
  };
}

const LinkForm = ({ visit, refusal }: { visit: Visit; refusal: Refusal | null }) => {
  const isPassword = refusal?.refused === "not_authenticated";
  return (
    <Form by={visit} action={PATH} label="Link a chat">
      {refusal && !isPassword ? <Notice kind="problem">{refusal.message}</Notice> : null}
      <Field
        name="password"
        label="Your password"
        type="password"
        required
        problem={isPassword ? refusal.message : undefined}
        hint="So that nobody links their own chat at your open browser."
        attributes={{ autocomplete: "current-password", maxlength: "256" }}
      />
      <button type="submit" class="primary">
        Make a code
      </button>
    </Form>
  );
};

export async function sendChatCode(submission: Submission): Promise<Page> {
  const { ctx, caller, client, fields } = submission;
  if (!ctx.messaging?.hears) return linkPage(submission, null);
  const made = await makeLinkCode(ctx, caller, fields.password ?? "", client);
  return isRefusal(made) ? linkPage(submission, made) : codePage(made, await ctx.messaging.bot.username());
}

/** The only page that ever shows the code. */
const codePage = ({ code, expiresAt }: NewCode, bot: string | null): Page => ({
  title: "Your code",
  section: null,
  hasSecret: true,
  content: (
    <>
      <Head title="Your code" about="Send it to the bot, in a chat with nobody else in it" />
      <Card>
        <Secret label="The code" of={displayCode(code)} />
        <Facts
          of={[
            ["Send it to", bot === null ? "the bot of this instance" : <Text of={`@${bot}`} />],
            ["It works once, until", <Time at={expiresAt} />],
          ]}
        />
        <p class="actions">
          {bot === null ? null : (
            <a class="button primary" href={`https://t.me/${bot}?start=${code}`} rel="noreferrer">
              Open the chat
            </a>
          )}
          <a class="button" href={NOTICES}>
            I have sent it
          </a>
        </p>
      </Card>
    </>
  ),
});

export async function sendUnlink({ ctx, caller }: Submission) {
  const unlinked = await unlinkOwnChat(ctx, caller);
  return isRefusal(unlinked) ? unlinked : { to: `${NOTICES}?done=unlinked` };
}
