import { type Verdict, verifyReceipt } from "../../core/receipt/verify.ts";
import { sha256 } from "./sha256.ts";

/** The script of a receipt's page: it verifies the page's own data, with the code of `holdfast receipt verify`. */

type Element = { textContent: string; hidden: boolean; className: string; append(child: Element): void };
type Button = Element & { disabled: boolean; addEventListener(type: "click", listener: () => void): void };
type Document = {
  getElementById(id: string): Button | null;
  createElement(tag: "li"): Element;
};
const page = (globalThis as unknown as { readonly document: Document }).document;

const found = (id: string): Button => {
  const element = page.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
};

function say(lines: readonly string[], isGood: boolean): void {
  const list = found("verdict");
  list.textContent = "";
  list.className = isGood ? "good" : "wrong";
  list.hidden = false;
  for (const line of lines) {
    const item = page.createElement("li");
    item.textContent = line;
    list.append(item);
  }
}

function sentencesOf({ kid, origin, cosigned, unknownCosigners, onChain }: Verdict): readonly string[] {
  const others = [...cosigned.map(({ name }) => name), ...unknownCosigners];
  return [
    "The receipt holds; nothing in it was altered.",
    `Its signature is by the key ${kid}, which this page brings. That it is the instance's, its /.well-known/jwks.json says.`,
    "Every hash of its spec and its trace is right, and its moves are legal.",
    origin === null
      ? "It is not in the log yet."
      : `Its settlement is in the log ${origin}, whose checkpoint is signed by a key of this page.`,
    ...(onChain
      ? [
          `The chain ${onChain.network} was not asked. An explorer of it must show, in block ${onChain.block}, a transaction to ${onChain.address} whose input data, as text, is the checkpoint of this page.`,
        ]
      : []),
    ...(others.length > 0
      ? [
          `${others.join(", ")} signed the checkpoint too. This page does not have their keys, so that was not verified.`,
        ]
      : []),
  ];
}

async function verify(): Promise<void> {
  // Browsers verify signatures on pages of https, of this machine and of files alone.
  if (!(globalThis as { readonly isSecureContext?: boolean }).isSecureContext)
    return say(["This browser verifies nothing over plain http. Save the page and open the file."], false);
  const { receipt, jwks } = JSON.parse(found("receipt-data").textContent) as Record<string, unknown>;
  const verdict = await verifyReceipt(receipt, { jwks, witnesses: [] }, sha256);
  const isGood = verdict.problems.length === 0;
  say(isGood ? sentencesOf(verdict) : ["The receipt does not hold:", ...verdict.problems], isGood);
}

const button = found("verify");
button.hidden = false;
button.addEventListener("click", () => {
  button.disabled = true;
  verify()
    .catch((error: unknown) => say([`The verification failed: ${String(error)}`], false))
    .finally(() => {
      button.disabled = false;
    });
});
