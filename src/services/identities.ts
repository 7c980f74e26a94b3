import { isRefusal } from "../core/errors.ts";
import { agentDocument } from "../resources/did-document.ts";
import { agentNotFound } from "./admin/agents.ts";
import type { Context } from "./context.ts";

/** The public document of an agent's `did:web`. It needs no credentials, and shows neither name nor status. */
export async function readAgentDocument({ store, baseUrl }: Context, id: string) {
  const agent = (await store.read((reader) => reader.agents.get(id))) ?? agentNotFound(id);
  return isRefusal(agent) ? agent : agentDocument(baseUrl, agent);
}
