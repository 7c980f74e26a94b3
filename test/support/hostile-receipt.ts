import { expect } from "bun:test";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import type { Credentials } from "./client.ts";
import { type Service, type ShellService, startTestShell } from "./server.ts";

/** A receipt whose every text was written by somebody who wants its reader to see something else. */

/** Markup, both directions, emoji, and as long as a payee may be. The open refuses most hidden characters. */
const MARKUP = `</script><img src=x onerror=alert(1)>"'&\\u0000 \u061cשלום عربي 👩\u200d👧 \u00e9 e\u0301 \ufb01`;
export const HOSTILE_PAYEE = MARKUP + "😀".repeat(512 - [...MARKUP].length);

/** The payee as people read it: a mark of direction is written out. */
export const HOSTILE_PAYEE_SHOWN = HOSTILE_PAYEE.replace("\u061c", "\\u061c");

/** What JSON may say of a value: written by hand, since it is the form that matters. */
const HOSTILE_VALUE = String.raw`{ "\ud83d\ude00": 1, "\ue000": 2, "z": -0, "10": 1.0, "9": 1E2, "__proto__": {"constructor": null}, "": [[], {}],
  "edges": [9007199254740991, -9007199254740991, 0.1, 1e-6, 1e-7, 1.5e-7, 5e-324, 2.2250738585072014e-308, 123456.789e-3, 4503599627370496.5, 0.30000000000000004, -1e-9, 333333333.3333333],
  "texts": ["\u202e\u2066\u200b\u2028\u2029\ufeff", "\u0000\u0007\b\t\n\f\r\u001f\u007f\u0080", "\\ud800", "\ud83d\ude00", "<!--</script>", "\/\"", "\u00e9 e\u0301"] }`;

export const HOSTILE_ANSWER = `{"\u{1f600}\u2028":${HOSTILE_VALUE}}`;

/** A host of other letters, and almost as long as a URL may be. It is fetched from nobody. */
export const HOSTILE_SOURCE = `https://${"a".repeat(1_900)}.שלום-عربي.example/`;

/** A warrant that was released, with all of it in its terms. Its id. */
export async function settleHostile(service: Service, as: Credentials, source_url: string): Promise<string> {
  const terms = service.body({ payee: HOSTILE_PAYEE, amount: "999999", spec: "SPEC" });
  const spec = `{"clauses":[{"kind":"json.jsonpath","path":"$['\u{1f600}\u2028']","equals":${HOSTILE_VALUE}},{"equals":200.0,"kind":"http.status"}]}`;
  const text = JSON.stringify(terms).replace('"SPEC"', () => spec);
  const { id } = (await service.post("/v1/warrants", text, { as })).body;
  const verified = await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as });
  expect(verified.body.state).toBe("released");
  return id;
}

/** A service with such a receipt, which is in the log. */
export async function startHostile(): Promise<{ readonly service: ShellService; readonly id: string }> {
  const body = Buffer.from(HOSTILE_ANSWER);
  const service = startTestShell({
    fetchEvidence: async () => ({
      evidence: reachedEvidence({ status: 200, body }),
      ...{ status: 200, bytes: body.length, durationMs: 1, answer: UNSEEN_ANSWER },
    }),
  });
  const home = await service.organisation();
  const id = await settleHostile(service, home.live.as, HOSTILE_SOURCE);
  await anchor(service.ctx);
  return { service, id };
}
