import { FACILITATOR_FAULTS } from "./facilitator.ts";
import { type Answer, listen } from "./listener.ts";
import { officialApp, paymentOf, type SellerOptions } from "./official-seller.ts";
import { type SimpleSellerOptions, simpleApp } from "./simple-seller.ts";

/**
 * What a seller does with a paid request. Before: the fault comes before anything is settled, and the seller has the payment.
 * After: the payment is settled, or the voucher taken, as by a good seller; then the answer is broken.
 */
export const SELLER_FAULTS = [
  "fails-before",
  "drops-before",
  "hangs-before",
  "asks-again-before",
  /** Redirects to a path that would sell. */
  "redirects-before",
  /** Sells without settling, with a receipt that says that it has settled. */
  "lies-before",
  "fails-after",
  "drops-after",
  "hangs-after",
  "asks-again-after",
  "redirects-after",
  /** The goods without a receipt, or with one that says that nothing was settled. */
  "no-receipt-after",
  "denies-after",
] as const;
export type SellerFault = (typeof SELLER_FAULTS)[number];
export type Fault = SellerFault | (typeof FACILITATOR_FAULTS)[number];

export type FaultySeller = {
  /** The URL that sells with this fault, of the seller or of its facilitator; without a fault, one that works. */
  urlOf(fault?: Fault): string;
  /** Every payment that came: its header as it came, and the path. */
  readonly payments: readonly { readonly path: string; readonly header: string }[];
  /** Resolves when one more request was left without an answer by the seller. */
  leavesOne(): Promise<void>;
  /** Settles the last payment after all, which a seller may do with a payment that it has. */
  settleLast(): Promise<Response>;
  close(): Promise<void>;
};

const WELL = "/well";

/** A seller with faults, by the official middleware or for vouchers. The path chooses the fault, so one seller has them all. */
export async function startFaultySeller(options: SellerOptions | SimpleSellerOptions): Promise<FaultySeller> {
  const well = appOf(options);
  const apps = new Map(
    "version" in options
      ? FACILITATOR_FAULTS.map((fault) => [fault as string, officialApp(options, fault)])
      : [],
  );
  const payments: { path: string; header: string }[] = [];
  let last: Request | null = null;
  const listener = await listen(async (request): Promise<Answer> => {
    const { pathname: path } = new URL(request.url);
    const name = path.slice(1);
    const app = apps.get(name) ?? well;
    const header = paymentOf(request);
    if (header === null) return app.fetch(request);
    payments.push({ path, header });
    last = request.clone() as Request;
    return insteadOf(name, await unpaid(well, request)) ?? spoilt(name, await app.fetch(request));
  });
  return {
    urlOf: (fault) => `${listener.url}${fault === undefined ? WELL : `/${fault}`}`,
    payments,
    leavesOne: listener.leavesOne,
    async settleLast() {
      if (last === null) throw new Error("no payment came");
      return well.fetch(last);
    },
    close: listener.close,
  };
}

type App = { fetch(request: Request): Response | Promise<Response> };

const appOf = (options: SellerOptions | SimpleSellerOptions): App =>
  "version" in options ? officialApp(options) : simpleApp(options);

/** The 402 that this request would get without its payment. */
const unpaid = ({ fetch }: App, { url }: Request): Response | Promise<Response> => fetch(new Request(url));

const failed = () => Response.json({ error: "out of order" }, { status: 500 });
const elsewhere = () => new Response(null, { status: 307, headers: { location: WELL } });

/** What the seller does before anything is settled, or null where it goes on. */
function insteadOf(name: string, challenge: Response): Answer | null {
  if (name === "fails-before") return failed();
  if (name === "drops-before") return "dropped";
  if (name === "hangs-before") return "never";
  if (name === "asks-again-before") return challenge;
  if (name === "redirects-before") return elsewhere();
  if (name !== "lies-before") return null;
  const receipt = receiptOf({ success: true, transaction: `0x${"ab".repeat(32)}` });
  return Response.json({ ok: true, answer: 42 }, { headers: receipt });
}

/** What happens to the answer to a payment that was settled. */
async function spoilt(name: string, answer: Response): Promise<Answer> {
  if (name === "fails-after") return failed();
  if (name === "drops-after") return "dropped";
  if (name === "hangs-after") return "never";
  if (name === "asks-again-after") return Response.json({ error: "pay again" }, { status: 402 });
  if (name === "redirects-after") return elsewhere();
  if (name === "no-receipt-after") return new Response(answer.body, { status: answer.status });
  if (name !== "denies-after") return answer;
  const receipt = receiptOf({ success: false, transaction: "", errorReason: "unexpected_error" });
  return new Response(answer.body, { status: answer.status, headers: receipt });
}

/** A receipt in the headers of both versions; each names its network as it does. */
function receiptOf(receipt: object): Record<string, string> {
  const encode = (network: string) => btoa(JSON.stringify({ ...receipt, network }));
  return { "payment-response": encode("eip155:84532"), "x-payment-response": encode("base-sepolia") };
}
