import { parseJsonText } from "../../core/json-text.ts";
import { type Verdict, verifyReceipt } from "../../core/receipt/verify.ts";
import { type NoteKey, parseSignedNote, parseVerifierKey } from "../../core/signed-note.ts";
import { contentOf, escapeHtml, titleOf } from "./content.ts";
import { sha256 } from "./sha256.ts";

/**
 * The script of a receipt's page: it verifies the page's own data, with the code of `holdfast receipt verify`, and that the page
 * shows what these data say. Somebody may have altered only what people read.
 */

type Node = {
  readonly nodeName: string;
  readonly textContent: string;
  readonly childNodes: Iterable<Node>;
  cloneNode(deep: true): Node;
  isEqualNode(other: Node): boolean;
  querySelectorAll(selector: string): Iterable<{ remove(): void }>;
};
type Element = { textContent: string; hidden: boolean; className: string; append(child: Element): void };
type Button = Element & { disabled: boolean; addEventListener(type: "click", listener: () => void): void };
type Document = {
  readonly body: Node;
  readonly title: string;
  getElementById(id: string): Button | null;
  createElement(tag: "li"): Element;
  querySelectorAll(selector: "time"): Iterable<{ readonly dateTime: string; textContent: string }>;
};
type Browser = {
  readonly document: Document;
  readonly isSecureContext?: boolean;
  readonly DOMParser: new () => { parseFromString(text: string, type: "text/html"): Document };
};
const { document: page, isSecureContext, DOMParser } = globalThis as unknown as Browser;

const found = (id: string): Button => {
  const element = page.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
};

/** What people see of a page: without its scripts, comments and the blanks between its parts. */
function seenIn({ body }: Document): readonly Node[] {
  const copy = body.cloneNode(true);
  for (const unseen of copy.querySelectorAll("script, noscript")) unseen.remove();
  return [...copy.childNodes].filter(
    ({ nodeName, textContent }) =>
      nodeName !== "#comment" && !(nodeName === "#text" && textContent.trim() === ""),
  );
}

/** As the page came, before anything here changes it. */
const seen = seenIn(page);

const LOCAL = new Intl.DateTimeFormat(undefined, {
  ...{ day: "numeric", month: "short", year: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
});
for (const time of page.querySelectorAll("time")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.getTime())) time.textContent = LOCAL.format(at);
}

function showsWhatItSays(receipt: NonNullable<Verdict["receipt"]>): boolean {
  const content = contentOf(receipt, page.getElementById("save") !== null);
  const title = `<title>${escapeHtml(titleOf(receipt))}</title>`;
  const written = new DOMParser().parseFromString(`${title}<body>${content}`, "text/html");
  const expected = seenIn(written);
  const isSame = expected.length === seen.length && expected.every((part, at) => seen[at]?.isEqualNode(part));
  return isSame && page.title === written.title;
}

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
    ...cosigned.map(
      ({ name, at }) =>
        `The witness ${name} has cosigned the checkpoint at ${at}, by the key that this page brings. Whose key it is, the witness says.`,
    ),
    ...(unknownCosigners.length > 0
      ? [`Not verified, since this page has no key for it: a line by ${unknownCosigners.join(", ")}.`]
      : []),
    "If somebody gave you this as a file, they may have written this button too: holdfast receipt verify does not depend on it.",
  ];
}

/** Those of the page's witnesses that have a line in the receipt's checkpoint. The others did not sign it yet. */
function signersAmong(witnesses: unknown, receipt: unknown): readonly NoteKey[] {
  const { anchor } = (receipt ?? {}) as { readonly anchor?: { readonly checkpoint?: unknown } | null };
  const lines = parseSignedNote(String(anchor?.checkpoint))?.lines ?? [];
  return (Array.isArray(witnesses) ? witnesses : [])
    .map((text) => parseVerifierKey(String(text), sha256))
    .filter((key) => key !== null)
    .filter((key) => lines.some(({ name, id }) => name === key.name && id === key.id));
}

async function verify(): Promise<void> {
  // Browsers verify signatures on pages of https, of this machine and of files alone.
  if (!isSecureContext)
    return say(["This browser verifies nothing over plain http. Save the page and open the file."], false);
  const data = parseJsonText(found("receipt-data").textContent);
  if ("problem" in data) return say([`The data of this page ${data.problem}.`], false);
  const { receipt, jwks, witnesses } = data.value as Record<string, unknown>;
  const verdict = await verifyReceipt(receipt, { jwks, witnesses: signersAmong(witnesses, receipt) }, sha256);
  const problems = [...verdict.problems];
  if (verdict.receipt && !showsWhatItSays(verdict.receipt))
    problems.push(
      "this page shows something else than its data say: it was altered, or an extension of this browser changed it",
    );
  const isGood = problems.length === 0;
  say(isGood ? sentencesOf(verdict) : ["The receipt does not hold:", ...problems], isGood);
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
