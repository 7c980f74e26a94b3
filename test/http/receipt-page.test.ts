import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { receiptPages } from "../../src/console/receipt/page.ts";
import { sha256 } from "../../src/console/receipt/sha256.ts";
import { canonicalJson, sha256Bytes } from "../../src/core/canonical.ts";
import { PAGE_TYPE, pageStatement, partsOfPage, signedPage } from "../../src/core/receipt/saved-page.ts";
import { verifyFile } from "../../src/core/receipt/verify.ts";
import { formatVerifierKey } from "../../src/core/signed-note.ts";
import { prefersHtml } from "../../src/http/accept.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { createCommandLine } from "../support/command-line.ts";
import { NO_WITNESSES } from "../support/context.ts";
import {
  HOSTILE_PAYEE,
  HOSTILE_PAYEE_SHOWN,
  HOSTILE_SOURCE,
  startHostile,
} from "../support/hostile-receipt.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { createSigner } from "../support/receipts.ts";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** The page of a receipt, as it is served and as it is saved (docs/security, "A receipt's page"). */

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
let service: Service;
let source: Source;
let home: TestOrganisation;
let id: string;
let folder: string;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
  folder = mkdtempSync(join(tmpdir(), "holdfast-page-"));
  home = await service.organisation();
  id = await settled("live", HOSTILE_PAYEE);
});
afterAll(async () => {
  await service?.close();
  source?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function settled(mode: "live" | "sandbox", payee: string): Promise<string> {
  const { as } = home[mode];
  const spec = {
    clauses: [
      { kind: "http.status", equals: 200 },
      { kind: "json.jsonpath", path: "$.a", equals: payee },
    ],
  };
  const opened = await service.opened(home, { payee, spec }, { as });
  const source_url = source.gives({ a: payee });
  await service.post(`/v1/warrants/${opened.id}/verify`, { source_url }, { as });
  await anchor(service.ctx);
  return opened.id;
}

const pageOf = (warrant: string) => service.get(`/t/${warrant}`, { as: { Accept: BROWSER } });
const savedOf = (warrant: string) => service.get(`/t/${warrant}/receipt.html`);

/** What people read in a part of a page: its tags are gone, and what was escaped is as it was. */
const plain = (html: string): string =>
  html
    .replace(/<[^>]+>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#x27;", "'")
    .replaceAll("&amp;", "&");

const allIn = (html: string, pattern: RegExp): string[] =>
  [...html.matchAll(pattern)].map(([, part = ""]) => part);

/** The part below a heading. */
const partOf = (page: string, heading: string): string =>
  (page.split(`<h2>${heading}</h2>`)[1] ?? "").split("<h2>")[0] ?? "";

/** The cells of each row of its tables. */
const rowsIn = (part: string): string[][] =>
  allIn(part, /<tr>(.*?)<\/tr>/g).map((row) => allIn(row, /<t[dh][^>]*>(.*?)<\/t[dh]>/g).map(plain));

/** Its names, each with what is said of it. */
const fieldsIn = (part: string): string[][] =>
  [...part.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)].map(([, name = "", value = ""]) => [
    name,
    plain(value),
  ]);

test("a page says which block of a chain has its checkpoint, where, and that it did not ask", async () => {
  const receipt = (await service.get(`/t/${id}`)).body;
  const pageWith = (chain_ref: string | null) =>
    receiptPages.served({
      receipt: { ...receipt, anchor: { ...receipt.anchor, chain_ref } },
      ...{ jwks: {}, witnesses: [] },
    });
  const page = pageWith("eip155:8453#1234");
  const [origin] = receipt.anchor.checkpoint.split("\n");
  const address = `0x${new Bun.CryptoHasher("sha256").update(origin).digest("hex").slice(24)}`;
  for (const part of ["eip155:8453", ">1234<", address, "did not ask the chain"])
    expect(page).toContain(part);
  expect(pageWith(null)).toContain("not confirmed yet");
  for (const other of [pageWith(null), pageWith(receipt.anchor.chain_ref)])
    expect(other).not.toContain("did not ask the chain");
});

describe("the page", () => {
  test("is for browsers, has no script or style of its own, and may load ours only", async () => {
    const { status, headers, text } = await pageOf(id);
    expect([status, headers.get("content-type"), headers.get("vary")]).toEqual([
      200,
      "text/html; charset=utf-8",
      "Accept",
    ]);
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(text).not.toMatch(/<script>|<style|\sstyle=|\son[a-z]+=(?!alert)|https?:\/\/(?!127\.0\.0\.1)/);
    // Relative, so that they hold where a proxy puts the service below a path.
    const relative = [...text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link = ""]) => link);
    expect(relative.filter((link) => link.startsWith("/"))).toEqual([]);
    const links = relative.map((link) => new URL(link, `http://localhost/t/${id}`).pathname);
    expect(links.sort()).toEqual([
      ...["/console/receipt.css", "/console/receipt.js", "/docs/receipts"],
      `/t/${id}/receipt.html`,
    ]);
    for (const link of links) expect([link, (await service.get(link)).status]).toEqual([link, 200]);
    const json = await service.get(`/t/${id}`);
    expect([json.body.object, json.headers.get("vary")]).toEqual(["receipt", "Accept"]);
    expect((await pageOf("wrt_none")).code).toBe("warrant_not_found");
  });

  test("shows what others wrote as text", async () => {
    const { text } = await pageOf(id);
    expect(text).toContain(`<bdi>${Bun.escapeHTML(HOSTILE_PAYEE_SHOWN)}</bdi>`);
    expect(text).not.toContain("<img");
    expect(text.match(/<script/g)).toHaveLength(2);
    expect(text.match(/<\/script>/g)).toHaveLength(2);
  });

  test("says SANDBOX where it is one", async () => {
    const { text } = await pageOf(await settled("sandbox", "acme"));
    expect(text).toContain('<p class="sandbox">SANDBOX: no money here is real</p>');
    expect((await pageOf(id)).text).not.toContain("SANDBOX");
  });
});

describe("the page of a partial release", () => {
  let page: string;
  let receipt: Awaited<ReturnType<typeof pageOf>>["body"];
  let sourceUrl: string;
  beforeAll(async () => {
    const sharing = await service.organisation(2_000_000n);
    const { as } = sharing.live;
    await sharing.addPolicy({
      bands: [
        { minScore: 0.5, outcome: "partial_release", releasedBps: 3_333 },
        { minScore: 0, outcome: "refund" },
      ],
    });
    const clauses = [
      { kind: "http.status", equals: 200 },
      { kind: "json.jsonpath", path: "$.a", equals: "<b>" },
      { kind: "json.jsonpath", path: "$.b" },
      { kind: "file.sha256", digest: "0".repeat(64) },
    ];
    const terms = { amount: "1000001", payee: "acme", spec: { clauses } };
    const { id: partial } = await service.opened(sharing, terms, { as });
    sourceUrl = source.gives({ a: "c", b: 1 });
    await service.post(`/v1/warrants/${partial}/verify`, { source_url: sourceUrl }, { as });
    await anchor(service.ctx);
    [page, receipt] = [(await pageOf(partial)).text, (await service.get(`/t/${partial}`)).body];
    expect(receipt.warrant.state).toBe("partially_released");
  });

  test("says what was held, paid and returned, to whom, and how it ended", () => {
    expect(rowsIn(partOf(page, "The money"))).toEqual([
      ["Held", "1.000001 USDC"],
      ["Paid to acme", "0.3333 USDC"],
      ["Returned", "0.666701 USDC"],
    ]);
    const [head = ""] = page.split("<main>");
    expect(allIn(head, /<(?:h1|p)[^>]*>(.*?)<\/(?:h1|p)>/g).map(plain)).toEqual([
      `Receipt ${receipt.warrant.id}`,
      "1.000001 USDC",
      "promised to acme Partially released",
    ]);
  });

  test("has the exact value of each amount and time on hover", () => {
    const { warrant, checks, trace } = receipt;
    expect(allIn(page, /<span title="([^"]*)"><bdi>[\d. ]+ USDC</g)).toEqual(
      [warrant.amount, warrant.amount, "333300", "666701"].map(
        (digits) => `${digits} in the smallest unit of USDC`,
      ),
    );
    const times = [
      checks[0].evaluated_at,
      ...trace.map(({ recorded_at }: { recorded_at: string }) => recorded_at),
    ];
    const said = times.map((at) => `datetime="${at}" title="${at.slice(0, 10)} ${at.slice(11, 23)} UTC"`);
    expect(allIn(page, /<time ([^>]*)>/g)).toEqual(said);
    // None stands by itself.
    expect(page.split("<script")[0]?.replace(/<time.*?<\/time>/g, "")).not.toMatch(/>[^<]*\d{4}-\d\d-\d\dT/);
  });

  test("has each clause with its result", () => {
    expect(rowsIn(partOf(page, "What was promised"))).toEqual([
      ["Clause", "Asks for", "Result"],
      ["http.status", "equals 200", "✓ passed"],
      ["json.jsonpath", 'path "$.a", equals "<b>"', "✗ value_mismatch"],
      ["json.jsonpath", 'path "$.b"', "✓ passed"],
      ["file.sha256", `digest "${"0".repeat(64)}"`, "✗ digest_mismatch"],
    ]);
  });

  test("has all of the check", () => {
    const [check] = receipt.checks;
    expect(fieldsIn(partOf(page, "What was checked"))).toEqual([
      ["Source", new URL(sourceUrl).origin],
      ["Answer", "status 200, 15 bytes"],
      ["Score", "50 %"],
      ["Decision", "partial release"],
      ["Reasons", "value_mismatch, digest_mismatch"],
      ["When", check.evaluated_at],
      ["Evidence", check.evidence_hash],
      ["Vouched for", "observed by this instance"],
    ]);
  });

  test("has each move with its time, its state, who made it and its hash", () => {
    const [opened, verifying, settledBySystem] = receipt.trace;
    const by = `agent ${opened.actor.id}`;
    const rowOf = (entry: typeof opened, state: string, who: string) => [
      entry.recorded_at,
      state,
      who,
      `${entry.entry_hash.slice(0, 12)}…`,
    ];
    expect(rowsIn(partOf(page, "How it went"))).toEqual([
      ["When", "State", "By", "Entry"],
      rowOf(opened, "held", by),
      rowOf(verifying, "verifying", by),
      rowOf(settledBySystem, "partially released", "system"),
    ]);
  });

  test("has the hashes, the leaf and the checkpoint", () => {
    const { warrant, anchor: proof } = receipt;
    const part = partOf(page, "The proof");
    expect(fieldsIn(part)).toEqual([
      ["Spec", warrant.spec_hash],
      ["Rules", warrant.rules_hash],
      ["In the log", `entry ${proof.leaf_index} of ${proof.tree_size}, ${proof.chain_ref}`],
      ["On a chain", "no"],
    ]);
    const [, checkpoint = ""] = /<pre>([\s\S]*?)<\/pre>/.exec(part) ?? [];
    expect(plain(checkpoint)).toBe(proof.checkpoint);
  });
});

test("the page, served and saved, brings the keys of the instance's witnesses", async () => {
  const { witness: key } = createSigner();
  const witnessed = startTestShell({ witness: { ...NO_WITNESSES, witnesses: [{ key, url: "" }] } });
  const one = await witnessed.organisation();
  const { id: warrant } = await witnessed.opened(one);
  await witnessed.post(
    `/v1/warrants/${warrant}/verify`,
    { source_url: "http://source.example/" },
    { as: one.live.as },
  );
  const served = await witnessed.get(`/t/${warrant}`, { as: { Accept: BROWSER } });
  const saved = await witnessed.get(`/t/${warrant}/receipt.html`);
  const { body: receipt } = await witnessed.get(`/t/${warrant}`);
  const { body: jwks } = await witnessed.get("/.well-known/jwks.json");
  for (const { text } of [served, saved]) {
    const [block = "{}"] = allIn(text, /<script type="application\/json" id="receipt-data">([^<]*)</g);
    expect(JSON.parse(block)).toEqual({ receipt, jwks, witnesses: [formatVerifierKey(key)] });
  }
  await witnessed.close();
});

test("whatever others wrote, a page shows it as text, in its place and to be seen", async () => {
  const { service: hostile, id: warrant } = await startHostile();
  const served = await hostile.get(`/t/${warrant}`, { as: { Accept: BROWSER } });
  const saved = await hostile.get(`/t/${warrant}/receipt.html`);
  for (const { text } of [served, saved]) {
    const [, body = ""] = text.split("<body>");
    const [content = ""] = body.split("<script");
    // What turns, hides or breaks the text around it is written out: the line breaks are the page's own.
    const unseen = /(?!\n)[\p{Cc}\u200b\u200e\u200f\u061c\u2028-\u202e\u2060-\u2069\ufeff]/u;
    expect(content).not.toMatch(unseen);
    expect(content).not.toMatch(/<(?:img|!--)/);
    for (const part of [HOSTILE_PAYEE_SHOWN, "\\u202e\\u2066\\u200b\\u2028\\u2029\\ufeff", "<!--</script>"])
      expect(content).toContain(Bun.escapeHTML(part));
    const { origin } = new URL(HOSTILE_SOURCE);
    expect(origin).toMatch(/^https:\/\/a{1900}\.xn--[a-z0-9-]+\.example$/);
    expect(fieldsIn(partOf(content, "What was checked"))[0]).toEqual(["Source", origin]);
    // Each text ends where it began: none takes what stands after it into its direction.
    expect(allIn(content, /(<bdi>)/g).length).toBe(allIn(content, /(<\/bdi>)/g).length);
  }
  const found = await verifyFile(saved.text, { jwks: null, witnesses: [] }, sha256Bytes);
  expect(found.problems).toEqual([]);
  await hostile.close();
});

describe("the saved page", () => {
  const cli = () => createCommandLine(service.ctx);
  const verify = (text: string) => {
    const path = join(folder, "receipt.html");
    writeFileSync(path, text);
    return cli().run("receipt", "verify", path);
  };

  test("is a file that loads nothing, and its policy allows its own script and style alone", async () => {
    const { headers, text } = await savedOf(id);
    expect(headers.get("content-disposition")).toBe(`attachment; filename="receipt-${id}.html"`);
    const [, policy = ""] = /Content-Security-Policy" content="([^"]+)"/.exec(text) ?? [];
    const [, script = ""] = /<script type="module">([\s\S]*?)<\/script>/.exec(text) ?? [];
    expect(text.replace(script, "")).not.toMatch(/\s(?:src|href)="/);
    const [, style = ""] = /<style>([\s\S]*?)<\/style>/.exec(text) ?? [];
    const hashOf = (content: string) =>
      `'sha256-${new Bun.CryptoHasher("sha256").update(content).digest("base64")}'`;
    expect(policy).toBe(
      `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; base-uri 'none'; form-action 'none'`,
    );
    expect((await savedOf("wrt_none")).code).toBe("warrant_not_found");
  });

  test("is verified with its own keys, which is said", async () => {
    const { code, out } = await verify((await savedOf(id)).text);
    expect([code, out]).toEqual([0, expect.stringMatching(/keys +those in the page itself\n/)]);
    expect(out).toContain("give it as --jwks");
  });

  test("is refused wherever a character of it is changed", async () => {
    const { text } = await savedOf(id);
    const places = [
      text.indexOf("<h1>") + 10,
      text.indexOf("Returned"),
      text.lastIndexOf("-->") - 3,
      text.length - 2,
      20,
    ];
    for (let at = 0; at < text.length; at += 2_003) places.push(at);
    for (const at of places) {
      const altered = text.slice(0, at) + (text[at] === "5" ? "6" : "5") + text.slice(at + 1);
      const { code } = await verify(altered);
      expect([at, code]).toEqual([at, 1]);
    }
    for (const altered of [
      `${text} `,
      text.slice(0, 5_000),
      "<html>",
      `${text}${text}`,
      text.replace(/<!-- .*/, ""),
    ])
      expect((await verify(altered)).code).toBe(1);
    const other = text.replace("</bdi></span></h1>", "9</bdi></span></h1>");
    expect((await verify(other)).out).toContain("the page was altered: sha256 is");
  });

  test("holds as it is alone: no part of it may be cut, doubled, moved or put elsewhere", async () => {
    const { text } = await savedOf(id);
    const { problems } = await verifyFile(text, { jwks: null, witnesses: [] }, sha256Bytes);
    expect(problems).toEqual([]);
    const place = fc.nat({ max: text.length });
    const piece = fc.constantFrom(
      ...[
        " ",
        "<",
        "\n",
        "\ufeff",
        "<!-- holdfast-receipt-page a.b.c -->\n",
        "</script>",
        "<title>Paid</title>",
      ],
      ...(/<script type="application\/json"[^<]*<\/script>/.exec(text) ?? []),
      ...(/<!-- holdfast-receipt-page .*\n/.exec(text) ?? []),
    );
    await fc.assert(
      fc.asyncProperty(place, place, place, piece, async (one, other, to, more) => {
        const [from, end] = [Math.min(one, other), Math.max(one, other)];
        const part = text.slice(from, end);
        const rest = text.slice(0, from) + text.slice(end);
        for (const altered of [
          rest,
          text.slice(0, to) + part + text.slice(to),
          rest.slice(0, to) + part + rest.slice(to),
          text.slice(0, to) + more + text.slice(to),
          rest.slice(0, to) + more + rest.slice(to),
        ]) {
          if (altered === text) continue;
          const found = await verifyFile(altered, { jwks: null, witnesses: [] }, sha256Bytes);
          expect(found.problems).not.toEqual([]);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("around a genuine receipt, but signed by another key that came with it, does not hold", async () => {
    const { text } = await savedOf(id);
    const theirs = createTokens(newSigningKey());
    const { page } = partsOfPage(text) as { page: string };
    const lie = page
      .replace("<h1><bdi>", "<h1><bdi>9")
      .replace('"jwks":{"keys":[', `"jwks":{"keys":[${JSON.stringify(theirs.jwks.keys[0])},`);
    const signature = await theirs.sign(canonicalJson(pageStatement(lie, sha256Bytes)), PAGE_TYPE);
    const { code, out } = await verify(signedPage(lie, signature));
    expect([code, out.split("\n").slice(1)]).toEqual([
      1,
      [expect.stringMatching(/^ {2}- the page is signed by the key .+, but the receipt in it by /), ""],
    ]);
  });
});

test("SHA-256 of the page is that of Bun, of every length", () => {
  for (let length = 0; length < 300; length++) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 31 + length) % 256);
    expect(sha256(bytes).toHex()).toBe(new Bun.CryptoHasher("sha256").update(bytes).digest("hex"));
  }
});

test.each([
  [BROWSER, true],
  ["text/html", true],
  ["TEXT/HTML; charset=utf-8", true],
  ["application/json, text/html", true],
  ["application/json, text/html;q=0.9", false],
  ["text/html;q=0", false],
  ["text/html;q=0.5, */*;q=0.8", false],
  ["*/*", false],
  ["text/*", false],
  ["application/json", false],
  ["", false],
  [",;q=;text/html", false],
  [null, false],
])("Accept: %s asks for a page: %p", (accept, wanted) => {
  expect(prefersHtml(accept)).toBe(wanted);
});
