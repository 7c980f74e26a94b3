import type { VoucherClaims } from "../core/x402/voucher.ts";
import { createPaidPage, type PaidPage, type Terms, type Trusted } from "./paid-page.ts";

/** What the seller delivers, each at a path of its own. `scenes.ts` says what Holdfast does with it. */
export type Deliverable = "good" | "half" | "stale" | "broken";

export type Seller = {
  readonly url: string;
  /** @param page `paid` delivers only for a voucher */
  urlOf(page: Deliverable | "paid"): string;
  /** The vouchers that `paid` has accepted, in order. */
  vouchers(): readonly VoucherClaims[];
  close(): Promise<void>;
};

/** The port that is tried first, so that the output is the same every time. */
const PORT = 8081;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A seller of weather forecasts on this machine. It is no part of Holdfast, which fetches from it as from any other seller. */
export function openSeller(trusted: Trusted, terms: Terms): Seller {
  const paid = createPaidPage(trusted, terms, () => forecast(MINUTE_MS));
  const server = listen(PORT, paid) ?? listen(0, paid);
  if (!server) throw new Error("there is no free port for the seller");
  const url = addressOf(server);
  return {
    url,
    urlOf: (page) => `${url}/${page}`,
    vouchers: paid.vouchers,
    close: () => server.stop(true),
  };
}

const addressOf = ({ port }: { readonly port?: number | undefined }): string => `http://127.0.0.1:${port}`;

function listen(port: number, paid: PaidPage) {
  try {
    return Bun.serve({
      hostname: "127.0.0.1",
      port,
      routes: {
        "/good": () => Response.json(forecast(2 * MINUTE_MS)),
        "/half": () => Response.json(halfForecast()),
        "/stale": () => Response.json(forecast(2 * DAY_MS)),
        "/broken": () => new Response("<h1>Internal Server Error</h1>", { status: 500 }),
        "/paid": (request, server) => paid.answer(request, `${addressOf(server)}/paid`),
      },
      fetch: () => new Response("Not found", { status: 404 }),
    });
  } catch {
    return null;
  }
}

const LOWS = [4, 6, 5, 3, 2, 4, 7];

/** A forecast of one week for Oslo, made `ageMs` ago by its `generated_at`. */
function forecast(ageMs: number) {
  const madeAt = Date.now() - ageMs;
  return {
    city: "Oslo",
    generated_at: new Date(madeAt).toISOString(),
    days: LOWS.map((low, index) => ({
      date: new Date(madeAt + index * DAY_MS).toISOString().slice(0, 10),
      low,
      high: low + 6,
    })),
  };
}

/** A fresh forecast of three days instead of seven, without their lows. */
function halfForecast() {
  const { days, ...rest } = forecast(5 * MINUTE_MS);
  return { ...rest, days: days.slice(0, 3).map(({ date, high }) => ({ date, high })) };
}
