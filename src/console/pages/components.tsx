/** @jsxImportSource hono/jsx */
import { STATES } from "../../core/warrant.ts";
import { Card, Empty, Facts, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { Amount, Badge, BigAmount, Id, Line, Passed, Reason, StateBadge, Time } from "../parts/figures.tsx";
import { Area, Choose, Field, Form } from "../parts/forms.tsx";
import { Gauge } from "../parts/gauge.tsx";
import { Secret } from "../parts/secret.tsx";
import type { Visit } from "../route.ts";

/** Every component once, for whoever builds a page. It is there only where Holdfast runs from its source. */
export async function showComponents(visit: Visit) {
  return {
    title: "Components",
    section: null,
    content: (
      <>
        <Head
          title="Components"
          about="What pages are made of"
          actions={
            <>
              <button type="button">Button</button>
              <button type="button" class="primary">
                Primary
              </button>
              <button type="button" class="danger">
                Danger
              </button>
            </>
          }
        />
        <div class="tiles">
          <div class="tile">
            <p>Tile</p>
            <BigAmount of={8_400_000n} asset="USDC" />
          </div>
        </div>
        <Card title="Badges">
          <p class="reasons">
            {STATES.map((state) => (
              <StateBadge state={state} />
            ))}
            <Badge of="resolved" />
            <Passed of={true} />
            <Passed of={false} />
          </p>
          <p class="reasons">
            <Reason code="status_mismatch" />
          </p>
        </Card>
        <Gauges />
        <ExampleTable now={visit.ctx.now()} />
        <div class="halves">
          <Card title="Form">
            <Form by={visit} action="/console/mode">
              <Field name="one" label="Field" hint="What it is for." />
              <Field name="two" label="Field with a problem" value="x" problem="must be a number" />
              <Area name="three" label="Area" />
              <Choose name="four" label="Choice" choices={[{ value: "a", words: "A" }]} />
            </Form>
          </Card>
          <Card title="Facts and notices">
            <Facts
              of={[
                ["Id", <Id of="wrt_01JH" />],
                ["Time", <Time at={visit.ctx.now()} />],
              ]}
            />
            <Notice kind="done">Done.</Notice>
            <Notice kind="problem">Something is wrong.</Notice>
            <Notice kind="note">A note.</Notice>
            <Empty title="Nothing here yet">
              <p>Says what to do next.</p>
            </Empty>
          </Card>
        </div>
      </>
    ),
  } as const;
}

const Gauges = () => (
  <Card title="Gauges">
    <div class="gauges">
      {[2n, 9n, 10n].map((used) => (
        <Gauge label="Used" used={used} max={10n} words={`${used} of 10`} />
      ))}
    </div>
    <Secret label="A secret" of="hf_test_…" />
  </Card>
);

const ExampleTable = ({ now }: { now: number }) => (
  <Card title="Table">
    <Table
      label="Example"
      columns={["Payee", "Amount", "State", "Opened"]}
      numbers={["Amount"]}
      rows={[
        [
          <Line of="acme" />,
          <Amount of={12_345_678_901n} asset="USDC" />,
          <StateBadge state="held" />,
          <Time at={now} />,
        ],
        [
          <Line of={"a payee that somebody gave a name without an end ".repeat(3)} />,
          <Amount of={1n} asset="USDC" />,
          <StateBadge state="partially_released" />,
          <Time at={now} />,
        ],
      ]}
    />
    <Pager newer="#" older="#" />
  </Card>
);
