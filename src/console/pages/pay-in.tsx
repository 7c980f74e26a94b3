/** @jsxImportSource hono/jsx */
import type { PayIn } from "../../services/console/pay-in.ts";
import { Card, Facts, Notice } from "../parts/blocks.tsx";
import { Badge, Id, Text } from "../parts/figures.tsx";

/** Where an organisation pays in on a chain, and which deposits a chain brought. */

const factsOf = ({ asset, chain, address, token, block, isStopped }: PayIn["treasuries"][number]) =>
  [
    [
      "Send to",
      <>
        <Id of={address} /> {isStopped ? <Badge of="not credited at the moment" look="fail" /> : null}
      </>,
    ],
    ["Asset", <Text of={asset} />],
    ["Token", <Id of={token} />],
    ["Chain", chain],
    ["Credited", block === null ? "not looked at yet" : `up to block ${block}`],
  ] as const;

export const PayInCard = ({ of: { treasuries, senders } }: { of: PayIn }) =>
  treasuries.length === 0 ? null : (
    <Card title="Pay in on a chain">
      <p>
        What one of your registered addresses sends is credited once it is confirmed. What another one sends
        waits until the operator has said whose it is.{" "}
        <a href="/docs/money#deposits-on-a-chain">How deposits are found</a>
      </p>
      {treasuries.map((treasury) => (
        <Facts of={factsOf(treasury)} />
      ))}
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
              <Id of={address} />
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
