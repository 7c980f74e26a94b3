import { canonicalJson, sha256Bytes } from "../core/canonical.ts";
import { PAGE_TYPE, pageStatement, signedPage } from "../core/receipt/saved-page.ts";
import type { Context } from "./context.ts";

/** A saved page with the instance's signature over all of it, so that whoever keeps it cannot change what it shows. */
export async function signReceiptPage({ tokens }: Pick<Context, "tokens">, page: string): Promise<string> {
  const statement = canonicalJson(pageStatement(page, sha256Bytes));
  return signedPage(page, await tokens.sign(statement, PAGE_TYPE));
}
