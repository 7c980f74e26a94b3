import type { Receipt } from "../../core/receipt/form.ts";
import { dataBlock, type PageData } from "../../core/receipt/saved-page.ts";
import { contentOf, escapeHtml, type Html, titleOf } from "./content.ts";
import style from "./receipt.css" with { type: "text" };

/** The page of a receipt (docs/security, "A receipt's page"): its content, and what is around that as it is served and as it is saved. */

const SCRIPT_PATH = "/console/receipt.js";
const STYLE_PATH = "/console/receipt.css";

export const receiptAssets = {
  [SCRIPT_PATH]: {
    type: "text/javascript",
    // Loaded with the first page that needs it, since it is bundled then where Holdfast runs from its source.
    get body(): string {
      return script();
    },
  },
  [STYLE_PATH]: { type: "text/css", body: style },
} as const;

const script = (): string => (require("./script.ts") as typeof import("./script.ts")).receiptScript;

/** The page as it is served: its script and stylesheet come from the service, below whatever path it has. */
const servedPage = (data: PageData): string =>
  page(data, {
    head: `<link rel="stylesheet" href="..${STYLE_PATH}">\n<script type="module" src="..${SCRIPT_PATH}"></script>`,
    foot: "",
    save: true,
  });

/** The page as one file, which loads nothing: its policy names the hashes of its own script and style. */
function savedPage(data: PageData): string {
  const inline = script().replaceAll("</script", "<\\/script");
  const policy = `default-src 'none'; script-src '${integrityOf(inline)}'; style-src '${integrityOf(style)}'; base-uri 'none'; form-action 'none'`;
  return page(data, {
    head: `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<style>${style}</style>`,
    foot: `<script type="module">${inline}</script>\n`,
    save: false,
  });
}

const integrityOf = (content: string): string =>
  `sha256-${new Bun.CryptoHasher("sha256").update(content).digest("base64")}`;

export const receiptPages = { served: servedPage, saved: savedPage } as const;

type Around = { readonly head: Html; readonly foot: Html; readonly save: boolean };

function page(data: PageData, { head, foot, save }: Around): string {
  const receipt = data.receipt as Receipt;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${head}
<title>${escapeHtml(titleOf(receipt))}</title>
</head>
<body>
${contentOf(receipt, save)}
${dataBlock(data)}
${foot}</body>
</html>
`;
}
