/** @jsxImportSource hono/jsx */
import { isRefusal } from "../../core/errors.ts";
import { ACCESS, refuseAccess } from "../../core/roles.ts";
import type { History, Pictures } from "../../services/console/history.ts";
import { readOverview, type Waiting } from "../../services/console/overview.ts";
import { Card, Empty, Head } from "../parts/blocks.tsx";
import { hasMoney, MoneyChart, ReasonBars } from "../parts/charts.tsx";
import { Amount, BigAmount, Reason, StateBadge, Text, Time } from "../parts/figures.tsx";
import type { Visit } from "../route.ts";

/** What there is, what happened to it, and what needs a person. */
export const showOverview = (history: History) => async (visit: Visit) => {
  const overview = await readOverview(visit.ctx, visit.caller);
  if (isRefusal(overview)) return overview;
  const pictures = await history.read(visit.ctx, visit.caller);
  if (isRefusal(pictures)) return pictures;
  const { balances, owed, waiting } = overview;
  const owedOf = (asset: string) => owed.find((one) => one.asset === asset)?.payable ?? 0n;
  return {
    title: "Overview",
    section: "overview",
    content: (
      <>
        <Head title="Overview" />
        <div id="figures" class="stack" data-live="money">
          {balances.length === 0 ? <NoMoney visit={visit} /> : null}
          {balances.map(({ asset, balance }) => (
            <div class="tiles">
              <Tile words="Available" of={balance.available} asset={asset} />
              <Tile words="Held" of={balance.held} asset={asset} />
              <Tile words="Paid" of={balance.paid} asset={asset} />
              <Tile words="Owed to payees" of={owedOf(asset)} asset={asset} />
            </div>
          ))}
        </div>
        <NeedsPerson waiting={waiting} more={visit.around.waiting > waiting.length} />
        <Drawn pictures={pictures} />
      </>
    ),
  } as const;
};

/** The pictures. Where there was too much to read for one page, the script asks for the rest, and without it the next visit does. */
const Drawn = ({ pictures: { money, failures, isPartial } }: { pictures: Pictures }) => {
  const assets = money.filter(({ days }) => hasMoney(days));
  return (
    <div
      id="pictures"
      class="columns"
      data-live="money escalations"
      {...(isPartial && {
        "hx-get": "/console",
        "hx-trigger": "load delay:50ms",
        "hx-select": "#pictures",
        "hx-swap": "outerHTML",
      })}
    >
      <div>
        {assets.map(({ asset, days }) => (
          <Card
            title={`${asset}, the last ${days.length} days`}
            aside={isPartial ? <span class="quiet">still being counted</span> : null}
          >
            <MoneyChart asset={asset} days={days} />
          </Card>
        ))}
        {assets.length === 0 ? (
          <Card title="Money over time">
            <Empty title="Nothing moved lately">
              <p>What is held, paid and returned is drawn here, day by day.</p>
            </Empty>
          </Card>
        ) : null}
      </div>
      <div>
        <Card title="Why checks failed">
          {failures.length === 0 ? (
            <Empty title="None has failed lately">
              <p>The reasons of failed clauses are counted here.</p>
            </Empty>
          ) : (
            <ReasonBars failures={failures} />
          )}
        </Card>
      </div>
    </div>
  );
};

const Tile = ({ words, of, asset }: { words: string; of: bigint; asset: string }) => (
  <div class="tile">
    <p>{words}</p>
    <BigAmount of={of} asset={asset} />
  </div>
);

const NoMoney = ({ visit }: { visit: Visit }) => (
  <Card>
    <Empty title="There is no money yet">
      <p>A warrant holds money that came in before.</p>
      {refuseAccess(visit.caller, ACCESS.administer) ? (
        <p>An admin records what comes in.</p>
      ) : (
        <a class="button primary" href="/console/money/deposit">
          Record the first deposit
        </a>
      )}
    </Empty>
  </Card>
);

const NeedsPerson = ({ waiting, more }: { waiting: readonly Waiting[]; more: boolean }) => (
  <div id="needs" data-live="escalations">
    <Card title="Needs a person" aside={more ? <a href="/console/escalations">All of them</a> : null}>
      {waiting.length === 0 ? (
        <Empty title="Nothing waits for you">
          <p>A check that a policy does not decide by itself comes here.</p>
        </Empty>
      ) : (
        <ul class="steps">
          {waiting.map(({ escalation, warrant }) => (
            <li>
              <div>
                <a href={`/console/escalations/${escalation.id}`}>
                  <Amount of={warrant.amount} asset={warrant.asset} /> to <Text of={warrant.payee} />
                </a>{" "}
                <StateBadge state={warrant.state} />
                <div class="reasons">
                  {escalation.reasonCodes.map((code) => (
                    <Reason code={code} />
                  ))}
                </div>
              </div>
              <Time at={escalation.createdAt} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  </div>
);
