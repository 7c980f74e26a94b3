import { openStore } from "./store.ts";

/** Audits a data folder, as `holdfast audit` does; a server may be running on it. */
export const auditFolder = (dataFolder: string): Promise<readonly string[]> => openStore(dataFolder).audit();
