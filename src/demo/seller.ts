/** What the seller delivers at each path; see `scenes.ts` for what becomes of it. */
export type Deliverable = "good" | "half" | "stale" | "broken";

export type Seller = {
  readonly url: string;
  urlOf(deliverable: Deliverable): string;
  close(): Promise<void>;
};

/** Asked for first, so that the tour reads the same every time. */
const PORT = 8081;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A seller of weather forecasts on this machine. It is not part of Holdfast, which fetches from it as from anybody. */
export function openSeller(): Seller {
  const server = listen(PORT) ?? listen(0);
  if (!server) throw new Error("no port is free for the seller");
  const url = `http://127.0.0.1:${server.port}`;
  return { url, urlOf: (deliverable) => `${url}/${deliverable}`, close: () => server.stop(true) };
}

function listen(port: number) {
  try {
    return Bun.serve({
      hostname: "127.0.0.1",
      port,
      routes: {
        "/good": () => Response.json(forecast(2 * MINUTE_MS)),
        "/half": () => Response.json(halfForecast()),
        "/stale": () => Response.json(forecast(2 * DAY_MS)),
        "/broken": () => new Response("<h1>Internal Server Error</h1>", { status: 500 }),
      },
      fetch: () => new Response("Not found", { status: 404 }),
    });
  } catch {
    return null;
  }
}

const LOWS = [4, 6, 5, 3, 2, 4, 7];

/** A week for Oslo, made some milliseconds ago. */
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

/** Fresh, but of three days only, and without their lows. */
function halfForecast() {
  const { days, ...rest } = forecast(5 * MINUTE_MS);
  return { ...rest, days: days.slice(0, 3).map(({ date, high }) => ({ date, high })) };
}
