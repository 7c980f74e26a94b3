/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { sumOwed } from "../../core/solvency/owed.ts";
import { proofText } from "../../core/solvency/proof.ts";
import {
  type HeldAsset,
  type OwnLine,
  readSolvencyPage,
  type SolvencyPage,
  type WalletNow,
} from "../../services/console/solvency.ts";
import { proveSolvency } from "../../services/solvency/prove.ts";
import { Card, Empty, Facts, Head, Table } from "../parts/blocks.tsx";
import { Amount, Id, Text, Time } from "../parts/figures.tsx";
import { Field } from "../parts/forms.tsx";
import type { Download, Visit } from "../route.ts";
import { MoneyTabs } from "./payees.tsx";

/** The newest statement of what the instance owes, what it counts of the organisation, and the proof of that. */

const SOLVENCY = "/console/money/solvency";

export async function showSolvency(visit: Visit) {
  const found = await readSolvencyPage(visit.ctx, visit.caller);
  if (isRefusal(found)) return found;
  return {
    title: "Solvency",
    section: "money",
    content: (
      <>
        <Head
          title="Solvency"
          about={
            <>
              What this instance has signed that it owes, and the proof that your part is counted.{" "}
              <a href="/docs/solvency">What a proof shows</a>
            </>
          }
        />
        <MoneyTabs current={SOLVENCY} />
        {found.wallets.length === 0 ? null : (
          <Card title="What the wallets hold">
            <Wallets of={found.wallets} />
          </Card>
        )}
        {found.newest === null ? (
          <Card>
            <Empty title="No statement was signed yet">
              <p>The operator of this instance signs statements of what it owes.</p>
            </Empty>
          </Card>
        ) : (
          <Statement of={found.newest} />
        )}
      </>
    ),
  } as const;
}

const Statement = ({ of: { found, lines, held } }: { of: SolvencyPage }) => (
  <>
    <Card title={`The statement ${found.statement.number}`}>
      <Facts
        of={[
          ["Signed", <Time at={found.statement.createdAt} />],
          ["SHA-256", <code class="id">{found.kept.entryHash}</code>],
          ["In the log", found.place.leafIndex === null ? "not yet" : `entry ${found.place.leafIndex}`],
          [
            "Published",
            <a href={`/.well-known/holdfast/solvency/${found.statement.number}`}>as it was signed</a>,
          ],
        ]}
      />
    </Card>
    <Card title="Your part">
      {lines.length === 0 ? (
        <p class="quiet">Nothing was owed to you or your payees in this mode.</p>
      ) : (
        <div class="labelled">
          <Lines of={lines} />
        </div>
      )}
    </Card>
    {held.length === 0 ? null : (
      <Card title="What the wallets held">
        <HeldAssets of={held} />
      </Card>
    )}
    {lines.some(({ stated }) => stated !== null) ? <ProofForm /> : null}
  </>
);

const Lines = ({ of }: { of: readonly OwnLine[] }) => (
  <Table
    label="Your part"
    columns={["Asset", "Owed to you", "Owed to your payees", "Owed in all", "To how many"]}
    numbers={["Owed to you", "Owed to your payees", "Owed in all", "To how many"]}
    rows={of.map(({ asset, owed, stated }) => [
      <Text of={asset} />,
      <Amount of={owed.available + owed.held} asset={asset} />,
      <Amount of={owed.payable + owed.submitted} asset={asset} />,
      stated === null ? (
        <span class="quiet">left out</span>
      ) : (
        <Amount of={sumOwed(stated.owed)} asset={asset} />
      ),
      stated === null ? "" : String(stated.leaves),
    ])}
  />
);

const Wallets = ({ of }: { of: readonly WalletNow[] }) => (
  <Table
    label="What the wallets hold"
    columns={["Asset", "Owed to you and your payees", "Held on the chain", "Block", "Chain", "Wallet"]}
    numbers={["Owed to you and your payees", "Held on the chain", "Block"]}
    rows={of.map(({ asset, owed, chain, address, seen }) => [
      <Text of={asset} />,
      <Amount of={owed} asset={asset} />,
      seen === null ? <span class="quiet">not seen yet</span> : <Amount of={seen.balance} asset={asset} />,
      seen === null ? "" : String(seen.block),
      chain,
      <Id of={address} />,
    ])}
  />
);

const HeldAssets = ({ of }: { of: readonly HeldAsset[] }) => (
  <Table
    label="What the wallets held"
    columns={["Asset", "Owed in all", "Held on the chain", "Block", "Chain", "Wallet"]}
    numbers={["Owed in all", "Held on the chain", "Block"]}
    rows={of.map(({ asset, owed, holding: { chain, address, seen } }) => [
      <Text of={asset} />,
      <Amount of={sumOwed(owed)} asset={asset} />,
      seen === null ? (
        <span class="quiet">the chain did not say</span>
      ) : (
        <Amount of={seen.balance} asset={asset} />
      ),
      seen === null ? "" : String(seen.block),
      chain,
      <Id of={address} />,
    ])}
  />
);

const ProofForm = () => (
  <Card title="Proof">
    <form method="get" action={`${SOLVENCY}/proof`} class="form" aria-label="Proof" data-saves>
      <Field
        name="payee"
        label="Payee"
        hint="Empty: of what is owed to you. Else of what is owed to this payee of yours."
        attributes={{ maxlength: "1024", autocomplete: "off" }}
      />
      <button type="submit" class="primary">
        Save the proof
      </button>
    </form>
  </Card>
);

export async function openProof({ ctx, caller, search }: Visit): Promise<Download | Refusal> {
  const payee = search.get("payee") || undefined;
  const proof = await proveSolvency(ctx, caller, {
    ...{ organisation_id: caller.organisationId, mode: caller.mode },
    ...(payee !== undefined && { payee }),
  });
  if (isRefusal(proof)) return proof;
  const { body } = new Response(proofText(proof));
  if (!body) throw new Error("a text has a body");
  return { name: `holdfast-${caller.mode}-solvency.json`, type: "application/json; charset=utf-8", body };
}
