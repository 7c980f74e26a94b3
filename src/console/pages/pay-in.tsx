/** @jsxImportSource hono/jsx */
import type { PayIn } from "../../services/console/pay-in.ts";
import { Card, Notice, Table } from "../parts/blocks.tsx";
import { Badge, Text } from "../parts/figures.tsx";

/** Where an organisation pays in on a chain, and which deposits a chain brought. */

export const PayInCard = ({ of: { treasuries, senders } }: { of: PayIn }) =>
  treasuries.length === 0 ? null : (
    <Card title="Pay in on a chain">
      <p>
        What one of your registered addresses sends is credited once it is confirmed. What another one sends
        waits until the operator has said whose it is.{" "}
        <a href="/docs/money#deposits-on-a-chain">How deposits are found</a>
      </p>
      <Table
        label="Where to pay in"
        columns={["Asset", "Chain", "Send to", "Token"]}
        wide={["Token"]}
        rows={treasuries.map(({ asset, chain, address, token, block, isStopped }) => [
          <>
            <Text of={asset} />
            {isStopped ? (
              <>
                {" "}
                <Badge of="not credited at the moment" look="fail" />
              </>
            ) : null}
          </>,
          <>
            {chain}
            {block === null ? null : <span class="quiet"> up to block {block}</span>}
          </>,
          <code class="id">{address}</code>,
          <code class="id">{token}</code>,
        ])}
      />
      {senders.length === 0 ? (
        <Notice kind="note">
          No address is registered as yours. Tell the operator which one you pay from before you send
          anything.
        </Notice>
      ) : (
        <p>
          Your registered addresses:{" "}
          {senders.map(({ address, note }) => (
            <>
              <code class="id">{address}</code>
              {note === null ? null : (
                <>
                  {" ("}
                  <Text of={note} />)
                </>
              )}{" "}
            </>
          ))}
        </p>
      )}
    </Card>
  );

/** What a chain says of a deposit that it brought; nothing of those that were recorded by hand. */
export const OnChain = ({ block }: { block: number | null | undefined }) =>
  block === undefined ? null : block === null ? (
    <Badge of="no longer on its chain" look="fail" />
  ) : (
    <span class="quiet">block {block}</span>
  );
