import { bundledScript } from "./bundle.macro.ts" with { type: "macro" };

/** The script of a receipt's page. Loaded with the first page: from the source, it is bundled then. */
export const receiptScript: string = bundledScript();
