/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { BUILT_IN_RULES, type Policy } from "../../core/policy.ts";
import { changesBetween } from "../../core/policy-spans.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { listPolicies, type PolicyOf, readPolicy } from "../../services/console/policies.ts";
import { BandLine, BandWords, Changes } from "../parts/bands.tsx";
import { Card, Empty, Facts, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { choicesOf } from "../parts/choices.ts";
import { Badge, Id, Text, Time } from "../parts/figures.tsx";
import { Choose } from "../parts/forms.tsx";
import type { Visit } from "../route.ts";

/** Policies: which there are, where each is used, and what its versions say. */

type OfPolicy = { readonly id: string };
type Detail = Exclude<Awaited<ReturnType<typeof readPolicy>>, Refusal>;

export async function showPolicies(visit: Visit) {
  const listed = await listPolicies(visit.ctx, visit.caller, visit.search.get("after"));
  if (isRefusal(listed)) return listed;
  const mayEdit = roleIsAtLeast(visit.caller.role, "admin");
  return {
    title: "Policies",
    section: "policies",
    content: (
      <>
        <Head
          title="Policies"
          about="What a check leads to: release, a part, a person, or a refund."
          actions={
            mayEdit ? (
              <a class="button primary" href="/console/policies/new">
                Draft a policy
              </a>
            ) : null
          }
        />
        <div id="policies" class="stack" data-live="policies">
          <Decides policy={listed.ofOrganisation} />
          <Saved listed={listed} mayEdit={mayEdit} />
        </div>
      </>
    ),
  } as const;
}

type Listed = Exclude<Awaited<ReturnType<typeof listPolicies>>, Refusal>;

/** @param policy null where the built-in rules decide */
const Decides = ({ policy }: { policy: Policy | null }) => (
  <Card title="Where no other policy applies" aside={<a href="/docs/policies">How a policy is chosen</a>}>
    <p class="quiet">
      {policy === null ? (
        "A warrant of an agent without a policy of its own gets the rules that are built in:"
      ) : (
        <>
          A warrant of an agent without a policy of its own gets <PolicyLink policy={policy} />:
        </>
      )}
    </p>
    <BandLine rules={policy?.rules ?? BUILT_IN_RULES} title="What each score leads to" />
  </Card>
);

const Saved = ({ listed: { policies, isFirst, next }, mayEdit }: { listed: Listed; mayEdit: boolean }) => (
  <Card title="Saved policies">
    {policies.length === 0 ? (
      <Empty title="No policy is saved yet">
        <p>The built-in rules release a clean pass, and leave everything else to a person.</p>
        {mayEdit ? (
          <a class="button primary" href="/console/policies/new">
            Draft the first one
          </a>
        ) : null}
      </Empty>
    ) : (
      <Table
        label="Saved policies"
        columns={["Name", "For", "In use", "Version", "Saved"]}
        wide={["Saved"]}
        rows={policies.map(rowOf)}
      />
    )}
    <Pager
      newer={isFirst ? null : "/console/policies"}
      older={next === null ? null : `/console/policies?after=${next}`}
    />
    <p class="hint">
      A saved version never changes and is never deleted, since warrants were opened under it. To change a
      policy, open it and draft its next version.
    </p>
  </Card>
);

const PolicyLink = ({ policy }: { policy: Policy }) => (
  <a href={`/console/policies/${policy.id}`}>
    <Text of={policy.name} />, version {policy.version}
  </a>
);

const rowOf = (one: PolicyOf) => [
  <a href={`/console/policies/${one.policy.id}`}>
    <Text of={one.policy.name} />
  </a>,
  <ForWhom of={one} />,
  <InUse of={one} />,
  String(one.policy.version),
  <Time at={one.policy.createdAt} />,
];

const ForWhom = ({ of: { agent } }: { of: Pick<PolicyOf, "agent"> }) =>
  agent === null ? (
    <>The organisation</>
  ) : (
    <>
      <Text of={agent.name} /> <span class="quiet">{agent.mode}</span>
    </>
  );

const InUse = ({ of: { isInUse } }: { of: PolicyOf }) =>
  isInUse ? <Badge look="pass" of="in use" /> : <Badge of="when named" />;

export async function showPolicy(visit: Visit<OfPolicy>) {
  const older = Number(visit.search.get("older") || Number.NaN);
  const detail = await readPolicy(visit.ctx, visit.caller, {
    id: visit.params.id,
    other: visit.search.get("with"),
    olderThan: Number.isInteger(older) ? older : null,
  });
  if (isRefusal(detail)) return detail;
  const { policy } = detail;
  return {
    title: `Policy ${policy.name}`,
    section: "policies",
    content: (
      <>
        <div id="head" data-live="policies">
          <Head
            title={
              <>
                <Text of={policy.name} /> <Badge of={`version ${policy.version}`} />
                <InUse of={detail} />
              </>
            }
            about={
              detail.agent === null ? (
                "The organisation's"
              ) : (
                <>
                  Of <ForWhom of={detail} />
                </>
              )
            }
            actions={<Actions visit={visit} detail={detail} />}
          />
        </div>
        {visit.search.get("done") === "saved" ? (
          <Notice kind="done">
            Version {policy.version} is saved. New warrants get it; those that are open keep theirs.
          </Notice>
        ) : null}
        {detail.other === null ? null : (
          <Card
            title={`Version ${detail.other.version} beside version ${policy.version}`}
            aside={<a href={`/console/policies/${policy.id}`}>Close</a>}
          >
            <BandLine rules={detail.other.rules} title={`Version ${detail.other.version}`} />
            <BandLine rules={policy.rules} title={`Version ${policy.version}`} />
            <Changes of={changesBetween(detail.other.rules, policy.rules)} />
          </Card>
        )}
        <div class="columns">
          <Card title="What each score leads to">
            <BandLine rules={policy.rules} title="What each score leads to" />
            <BandWords rules={policy.rules} />
          </Card>
          <div>
            <div id="versions" class="stack" data-live="policies">
              <Card title="This version">
                <Facts
                  of={[
                    ["Id", <Id of={policy.id} />],
                    ["Saved", <Time at={policy.createdAt} />],
                    ["Rules hash", <Id of={policy.rulesHash} />],
                    ["New warrants", <Use detail={detail} />],
                  ]}
                />
                <p class="hint">
                  It never changes and is never deleted. To change the policy, draft its next version: the
                  form begins with these rules.
                </p>
              </Card>
              <Versions detail={detail} />
            </div>
            <Attach visit={visit} detail={detail} />
          </div>
        </div>
      </>
    ),
  } as const;
}

/** Whom a version decides for. */
const Use = ({ detail: { isInUse, agent } }: { detail: Detail }) => {
  if (!isInUse) return <>get it only where they name it in policy_id</>;
  return agent === null ? (
    <>of every agent without a policy of its own</>
  ) : (
    <>
      of <Text of={agent.name} />
    </>
  );
};

/** A version is never edited: a change is a draft of the next one. */
const Actions = ({ visit, detail: { policy, agent } }: { visit: Visit; detail: Detail }) => {
  if (!roleIsAtLeast(visit.caller.role, "admin")) return null;
  if (agent !== null && agent.mode !== visit.caller.mode)
    return <span class="quiet">Switch to {agent.mode} to change it</span>;
  return (
    <a class="button primary" href={`/console/policies/new?from=${policy.id}`}>
      Draft the next version
    </a>
  );
};

/** The newest policy of an agent, or of the organisation, is in use. So rules are attached by saving them there. */
const Attach = ({ visit, detail }: { visit: Visit; detail: Detail }) =>
  roleIsAtLeast(visit.caller.role, "admin") ? (
    <Card title="Use these rules elsewhere">
      <form class="form" method="get" action="/console/policies/new" aria-label="Use these rules elsewhere">
        <input type="hidden" name="from" value={detail.policy.id} />
        <Choose
          name="agent"
          label="For"
          value=""
          hint={`Agents of ${visit.caller.mode}. You see what changes before you save it there.`}
          choices={choicesOf(detail.agents, "The whole organisation")}
        />
        <button type="submit">Draft it there</button>
      </form>
    </Card>
  ) : null;

const Versions = ({ detail }: { detail: Detail }) => {
  const { policy, versions, olderThan, hasNewer } = detail;
  const path = `/console/policies/${policy.id}`;
  return (
    <Card title="Versions">
      <Table
        label="Versions"
        columns={["Version", "Saved", "Compare"]}
        rows={versions.map((one) => [
          <a href={`/console/policies/${one.id}`} aria-current={one.id === policy.id ? "page" : undefined}>
            {one.version}
          </a>,
          <Time at={one.createdAt} />,
          one.id === policy.id ? (
            <span class="quiet">shown here</span>
          ) : (
            <a href={`${path}?with=${one.id}`} aria-label={`Compare with version ${one.version}`}>
              Compare
            </a>
          ),
        ])}
      />
      <Pager
        newer={hasNewer ? path : null}
        older={olderThan === null ? null : `${path}?older=${olderThan}`}
      />
    </Card>
  );
};
