import { describe, expect, test } from "bun:test";
import { createMetrics, type Figures } from "../../src/platform/metrics.ts";
import { NO_FIGURES } from "../support/no-figures.ts";

const textOf = (metrics = createMetrics(), figures: Partial<Figures> = {}) =>
  metrics.text(async () => ({ ...NO_FIGURES, ...figures }));

/** The value of a series, as it is written; undefined where there is none. */
const seriesOf = (text: string, series: string): string | undefined =>
  text
    .split("\n")
    .find((line) => line.startsWith(`${series} `))
    ?.slice(series.length + 1);

test("every figure has its help, and every line a number", async () => {
  const text = await textOf();
  const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(20);
  expect([...text.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name)).toEqual(names);
  expect(new Set(names).size).toBe(names.length);
  for (const line of text.split("\n").filter((found) => found !== "" && !found.startsWith("#")))
    expect(line).toMatch(/^[a-z_]+(\{[^}]*\})? -?[0-9.e+]+$/);
});

describe("requests", () => {
  const answered = { method: "GET", route: "/v1/warrants/:id", status: 200, durationMs: 30 };

  test("are counted by route and status, and timed by route", async () => {
    const metrics = createMetrics();
    metrics.answered(answered);
    metrics.answered(answered);
    metrics.answered({ ...answered, status: 404, durationMs: 1 });
    const text = await textOf(metrics);
    const route = 'method="GET",route="/v1/warrants/:id"';
    expect(seriesOf(text, `holdfast_http_requests_total{${route},status="200"}`)).toBe("2");
    expect(seriesOf(text, `holdfast_http_requests_total{${route},status="404"}`)).toBe("1");
    const histogram = "holdfast_http_request_duration_seconds";
    expect(seriesOf(text, `${histogram}_count{${route}}`)).toBe("3");
    expect(seriesOf(text, `${histogram}_sum{${route}}`)).toBe("0.061");
    expect(seriesOf(text, `${histogram}_bucket{le="0.025",${route}}`)).toBe("1");
    expect(seriesOf(text, `${histogram}_bucket{le="0.05",${route}}`)).toBe("3");
  });

  test("are counted once, however often the text is asked for, and a time at a bound is within it", async () => {
    const metrics = createMetrics();
    for (const durationMs of [1, 1.001, 60_001]) metrics.answered({ ...answered, durationMs });
    await textOf(metrics);
    const text = await textOf(metrics);
    const route = 'method="GET",route="/v1/warrants/:id"';
    expect(seriesOf(text, `holdfast_http_requests_total{${route},status="200"}`)).toBe("3");
    const bucket = (le: string) =>
      seriesOf(text, `holdfast_http_request_duration_seconds_bucket{le="${le}",${route}}`);
    expect(["0.001", "0.0025", "60", "+Inf"].map(bucket)).toEqual(["1", "2", "2", "3"]);
  });

  test("to routes that do not exist make no series of their own", async () => {
    const metrics = createMetrics();
    for (let count = 0; count < 100; count++)
      metrics.answered({ method: `METHOD${count}`, route: null, status: 404, durationMs: 1 });
    const text = await textOf(metrics);
    expect(text).not.toContain("METHOD1");
    expect(seriesOf(text, 'holdfast_http_requests_total{method="other",route="other",status="404"}')).toBe(
      "100",
    );
  });
});

test("commits are counted by how many commands shared one", async () => {
  const metrics = createMetrics();
  metrics.committed(1, 2);
  metrics.committed(64, 8);
  const text = await textOf(metrics);
  expect(seriesOf(text, "holdfast_commit_commands_sum")).toBe("65");
  expect(seriesOf(text, "holdfast_commit_commands_count")).toBe("2");
  expect(seriesOf(text, "holdfast_commit_duration_seconds_sum")).toBe("0.01");
});

test("attempts of webhooks are counted by how they ended", async () => {
  const metrics = createMetrics();
  for (const code of [200, 299, 302, 500, null]) metrics.webhookAttempted(code);
  const text = await textOf(metrics);
  const counts = ["delivered", "refused", "no_response"].map((outcome) =>
    seriesOf(text, `holdfast_webhook_attempts_total{outcome="${outcome}"}`),
  );
  expect(counts).toEqual(["2", "2", "1"]);
});

test("money is by mode, asset and state; what is above 2^53 is rounded, and the help says so", async () => {
  const amount = 2n ** 63n - 1n;
  const money = [{ mode: "live", asset: "USDC", state: "held", amount }];
  const metrics = createMetrics();
  const text = await textOf(metrics, { money });
  const series = 'holdfast_money{mode="live",asset="USDC",state="held"}';
  expect(Number(seriesOf(text, series))).toBe(2 ** 63);
  expect(text).toMatch(/^# HELP holdfast_money .*2\^53 is rounded/m);
  expect(seriesOf(await textOf(metrics), series)).toBeUndefined();
});

test("assets beyond a bound are left out", async () => {
  const money = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ mode: "sandbox", asset: `A${index}`, state: "held", amount: 1n },
  }));
  const text = await textOf(createMetrics(), { money });
  expect(text.match(/^holdfast_money\{/gm)).toHaveLength(500);
});

test("counters that are kept elsewhere are shown unchanged, however often the text is asked for", async () => {
  const metrics = createMetrics();
  const evaluators = [{ pool: "verify", size: 2, busy: 1, waiting: 3, restarts: 4 }];
  await textOf(metrics, { evaluators });
  const text = await textOf(metrics, { evaluators });
  expect(seriesOf(text, 'holdfast_evaluator_restarts_total{pool="verify"}')).toBe("4");
  expect(seriesOf(text, 'holdfast_evaluator_waiting{pool="verify"}')).toBe("3");
});

test("places that are taken and waited for are shown, of each mode", async () => {
  const places = [
    { mode: "live", taken: 1, waiting: 2 },
    { mode: "sandbox", taken: 3, waiting: 4 },
  ];
  const text = await textOf(createMetrics(), { places });
  const names = places.flatMap(({ mode }) =>
    ["taken", "waiting"].map((what) => `holdfast_places_${what}{mode="${mode}"}`),
  );
  expect(names.map((name) => seriesOf(text, name))).toEqual([..."1234"]);
});

test("the audit is shown from its first end on", async () => {
  const metrics = createMetrics();
  expect(seriesOf(await textOf(metrics), "holdfast_audit_disagreements")).toBe("-1");
  const text = await textOf(metrics, { audit: { disagreements: 2, endedAt: 3_000, durationMs: 500 } });
  expect(seriesOf(text, "holdfast_audit_disagreements")).toBe("2");
  expect(seriesOf(text, "holdfast_audit_last_timestamp_seconds")).toBe("3");
});

test("webhooks that were given up, and payments that are not known, are shown", async () => {
  const metrics = createMetrics();
  const deliveries = { waiting: 1, lateMs: 2_000, exhausted: 3, notSent: 4 };
  const purchases = { unfinished: 5, unknown: 6, lateMs: 7_000, contradicted: 8 };
  await textOf(metrics, { deliveries, purchases });
  const text = await textOf(metrics, { deliveries, purchases });
  const names = [
    ...["webhook_deliveries_waiting", "webhook_late_seconds", "webhook_exhausted_total"],
    ...[
      "webhook_not_sent_total",
      "purchases_unfinished",
      "payments_unknown",
      "payments_late_seconds",
      "payments_contradicted",
    ],
  ];
  expect(names.map((name) => seriesOf(text, `holdfast_${name}`))).toEqual([..."12345678"]);
});

test("checks whose capsule could not be kept are counted", async () => {
  const metrics = createMetrics();
  await textOf(metrics, { capsulesNotKept: 2 });
  const text = await textOf(metrics, { capsulesNotKept: 3 });
  expect(seriesOf(text, "holdfast_capsules_not_kept_total")).toBe("3");
});

test("how late an anchor is, and what waits for one, is shown where the log is anchored on a chain", async () => {
  const metrics = createMetrics();
  const anchors = async (anchorLateMs: number | null) => {
    const text = await textOf(metrics, { anchorLateMs, leavesToAnchor: 7 });
    return ["late_seconds", "entries_waiting"].map((name) => seriesOf(text, `holdfast_chain_anchor_${name}`));
  };
  expect(await anchors(null)).toEqual([undefined, undefined]);
  expect(await anchors(3_000)).toEqual(["3", "7"]);
});

test("each witness has signed the newest checkpoint or not, and its failures are counted by kind", async () => {
  const metrics = createMetrics();
  const witnesses = [
    { witness: "one", hasSigned: true, failures: {} },
    { witness: "other", hasSigned: false, failures: { away: 4, behind: 0, parted: 1 } },
  ];
  const none = await textOf(metrics, { witnesses: [{ witness: "one", hasSigned: null, failures: {} }] });
  expect(seriesOf(none, 'holdfast_witness_signed{witness="one"}')).toBeUndefined();
  const text = await textOf(metrics, { witnesses });
  expect(seriesOf(text, 'holdfast_witness_signed{witness="one"}')).toBe("1");
  expect(seriesOf(text, 'holdfast_witness_signed{witness="other"}')).toBe("0");
  const failures = (why: string) =>
    seriesOf(text, `holdfast_witness_failures_total{witness="other",why="${why}"}`);
  expect(["away", "behind", "parted"].map(failures)).toEqual(["4", "0", "1"]);
});

test("the newest backup is shown where backups are asked for, also where there is none yet", async () => {
  const metrics = createMetrics();
  const newest = async (newestBackup: Figures["newestBackup"]) => {
    const text = await textOf(metrics, { newestBackup });
    return [
      seriesOf(text, "holdfast_backup_newest_timestamp_seconds"),
      seriesOf(text, "holdfast_backup_disagrees"),
    ];
  };
  expect(await newest(null)).toEqual([undefined, undefined]);
  expect(await newest({ agreedAt: 0, disagrees: true })).toEqual(["0", "1"]);
  expect(await newest({ agreedAt: 3_000, disagrees: false })).toEqual(["3", "0"]);
});
