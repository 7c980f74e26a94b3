/** @jsxImportSource hono/jsx */
import type { Agent } from "../../../core/agent.ts";
import { type ApiKey, endOf } from "../../../core/api-key.ts";
import { isRefusal, type Refusal, statusOf } from "../../../core/errors.ts";
import { createKey, type NewApiKey, revokeKey, rotateKey } from "../../../services/admin/keys.ts";
import { type Fields, OVERLAPS, readOverlap } from "../../../services/console/agent-input.ts";
import { listKeysOfAgent, readKey } from "../../../services/console/agents.ts";
import { Card, Empty, Facts, Head, Notice, Table } from "../../parts/blocks.tsx";
import { Confirmation } from "../../parts/confirmation.tsx";
import { Badge, Id, Text, Time } from "../../parts/figures.tsx";
import { Choose, Form } from "../../parts/forms.tsx";
import type { Markup } from "../../parts/markup.ts";
import { Secret } from "../../parts/secret.tsx";
import { problemsOf } from "../../problems.ts";
import type { Submission, Visit } from "../../route.ts";
import { AgentLink, type OfId, PagerOf, pageAskedOf } from "./words.tsx";

/** The API keys of an agent. A secret is shown once, on the page that answers the form which made it. */

export async function showKeys(visit: Visit<OfId>) {
  const found = await listKeysOfAgent(visit.ctx, visit.caller, visit.params.id, pageAskedOf(visit.search));
  if (isRefusal(found)) return found;
  const { agent, page } = found;
  const path = `/console/agents/${agent.id}/keys`;
  const make = <MakeKey visit={visit} agent={agent} />;
  return {
    title: `Keys of ${agent.name}`,
    section: "agents",
    content: (
      <>
        <Head
          title="API keys"
          about={
            <>
              of <AgentLink agent={agent} />
            </>
          }
          actions={page.rows.length > 0 ? make : null}
        />
        {visit.search.get("done") === "revoked" ? <Notice kind="done">The key is revoked.</Notice> : null}
        <div id="keys" data-live="keys">
          <Card>
            <Keys keys={page.rows} now={visit.ctx.now()} make={make} />
            <PagerOf path={path} page={page} ids={page.rows.map(({ id }) => id)} />
          </Card>
        </div>
      </>
    ),
  } as const;
}

/** The button that makes a key. */
export const MakeKey = ({ visit, agent }: { visit: Visit; agent: Agent }) => (
  <Form by={visit} action={`/console/agents/${agent.id}/keys`} class="plain-form" label="Make a key">
    <button type="submit">Make a key</button>
  </Form>
);

/** @param make makes a key; it is shown where there are none */
export const Keys = ({ keys, now, make }: { keys: readonly ApiKey[]; now: number; make: Markup }) =>
  keys.length === 0 ? (
    <Empty title="No keys yet">
      <p>The program sends a key with each request. Make one, and give it to the program.</p>
      {make}
    </Empty>
  ) : (
    <Table
      label="API keys"
      columns={["Key", "State", "Last use", "Made", "Actions"]}
      rows={keys.map((key) => [
        <code title={key.id}>…{key.lastFour}</code>,
        <EndOfKey of={key} now={now} />,
        <LastUse of={key} />,
        <Time at={key.createdAt} />,
        endOf(key, now) === null ? <KeyActions of={key} /> : <span class="quiet">nothing</span>,
      ])}
    />
  );

const LastUse = ({ of: { lastUsedAt } }: { of: ApiKey }) =>
  lastUsedAt === null ? (
    <span class="quiet">never used</span>
  ) : (
    <>
      used <Time at={lastUsedAt} />
    </>
  );

const EndOfKey = ({ of: key, now }: { of: ApiKey; now: number }) => {
  const end = endOf(key, now);
  if (end === null && key.expiresAt === null) return <Badge look="pass" of="works" />;
  return (
    <span class="stacked">
      <Badge look={end === null ? "pass" : ""} of={end ?? "works until"} />
      <small>
        <Time at={key.revokedAt ?? key.expiresAt ?? now} />
      </small>
    </span>
  );
};

const KeyActions = ({ of: key }: { of: ApiKey }) => (
  <span class="row-actions">
    {key.expiresAt === null ? (
      <a href={`/console/keys/${key.id}/rotate`} data-dialog>
        Rotate<span class="hidden"> the key …{key.lastFour}</span>
      </a>
    ) : null}
    <a href={`/console/keys/${key.id}/revoke`} data-dialog>
      Revoke<span class="hidden"> the key …{key.lastFour}</span>
    </a>
  </span>
);

export async function sendNewKey(submission: Submission<OfId>) {
  const key = await createKey(submission.ctx, submission.caller, { agent_id: submission.params.id });
  return isRefusal(key) ? key : secretPage(key, null);
}

/** The only page that ever shows the secret. */
const secretPage = (key: NewApiKey, replaced: { readonly last_four: string; readonly end: number } | null) =>
  ({
    title: "The new key",
    section: "agents",
    hasSecret: true,
    content: (
      <>
        <Head title="The new key" about="Give it to the program, and to nobody else" />
        <Card>
          <Secret label={`The ${key.mode} key`} of={key.secret} />
          <Facts
            of={[
              ["Id", <Id of={key.id} />],
              ["Sent as", <code>Authorization: Bearer …{key.last_four}</code>],
              ...(replaced === null
                ? []
                : [
                    [
                      "Replaces",
                      <>
                        <code>…{replaced.last_four}</code>, which ends <Time at={replaced.end} />
                      </>,
                    ] as const,
                  ]),
            ]}
          />
          <p class="actions">
            <a class="button primary" href={`/console/agents/${key.agent_id}`}>
              I have saved it
            </a>
            <a class="button" href="/docs/start">
              How to use it
            </a>
          </p>
        </Card>
      </>
    ),
  }) as const;

export const showRotate = (visit: Visit<OfId>) => rotatePage(visit, {}, null);

async function rotatePage(visit: Visit<OfId>, fields: Fields, refusal: Refusal | null) {
  const found = await readKey(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(found)) return found;
  const { key, agent } = found;
  const problems = refusal ? problemsOf(refusal, ["overlap_seconds"]) : {};
  return {
    title: "Rotate the key?",
    section: "agents",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation
        title={`Rotate the key …${key.lastFour}?`}
        back={`/console/agents/${agent.id}`}
        problem={problems[""]}
      >
        <Form by={visit} action={`/console/keys/${key.id}/rotate`} label="Confirm">
          <p>
            A new key is made beside it, and its secret is shown once. Both work for a while, so that the
            program can change over.
          </p>
          <Choose
            name="overlap_seconds"
            label="The old key goes on for"
            value={fields.overlap_seconds ?? "86400"}
            problem={problems.overlap_seconds}
            choices={OVERLAP_CHOICES}
          />
          <button type="submit" class="primary wide">
            Rotate it
          </button>
        </Form>
      </Confirmation>
    ),
  } as const;
}

/** The longest last. */
const OVERLAP_CHOICES = Object.entries(OVERLAPS).map(([value, words]) => ({ value, words }));

export async function sendRotate(submission: Submission<OfId>) {
  const { ctx, caller, fields, params } = submission;
  const answer = await rotateKey(ctx, caller, {
    key_id: params.id,
    overlap_seconds: readOverlap(fields.overlap_seconds),
  });
  if (isRefusal(answer)) return rotatePage(submission, fields, answer);
  const { last_four, expires_at } = answer.replaces;
  return secretPage(answer, { last_four, end: Date.parse(expires_at ?? answer.created_at) });
}

export const showRevoke = (visit: Visit<OfId>) => revokePage(visit, null);

async function revokePage(visit: Visit<OfId>, refusal: Refusal | null) {
  const found = await readKey(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(found)) return found;
  const { key, agent } = found;
  return {
    title: "Revoke the key?",
    section: "agents",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation
        title={`Revoke the key …${key.lastFour}?`}
        back={`/console/agents/${agent.id}`}
        problem={refusal?.message}
      >
        {key.revokedAt === null ? (
          <Form by={visit} action={`/console/keys/${key.id}/revoke`} label="Confirm">
            <ul class="consequences">
              <li>Every request with it is refused from now on. This cannot be undone.</li>
              <li>
                {key.lastUsedAt === null ? (
                  "It was never used."
                ) : (
                  <>
                    It was last used <Time at={key.lastUsedAt} />.
                  </>
                )}
              </li>
              <li>
                No money moves: what <Text of={agent.name} /> has opened stays as it is.
              </li>
            </ul>
            <button type="submit" class="danger wide">
              Revoke it
            </button>
          </Form>
        ) : (
          <Notice kind="note">It is revoked already.</Notice>
        )}
      </Confirmation>
    ),
  } as const;
}

export async function sendRevoke(submission: Submission<OfId>) {
  const answer = await revokeKey(submission.ctx, submission.caller, { key_id: submission.params.id });
  return isRefusal(answer)
    ? revokePage(submission, answer)
    : { to: `/console/agents/${answer.agent_id}?done=revoked` };
}
