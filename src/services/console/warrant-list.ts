import { isId } from "../../core/ids.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { State, Warrant } from "../../core/warrant.ts";
import type { Reader, WarrantFilter } from "../../store/reader.ts";
import type { Context } from "../context.ts";
import { PAGE_SIZE, type PageAsked, readPage } from "./paging.ts";

/** A page of warrants for people: filtered, searched and sorted, with the names of their agents. */

export type ListAsked = PageAsked & {
  readonly state: State | null;
  readonly agentId: string | null;
  readonly sort: "created" | "deadline";
  /** An id, an agent's name, or a part of a payee; empty for all. */
  readonly search: string;
  /** By deadline: how many come before it. */
  readonly offset: number;
};

export type ListedPage = {
  readonly warrants: readonly Warrant[];
  readonly hasNewer: boolean;
  readonly hasOlder: boolean;
  /** The warrant after which a search goes on, where it looked at as many as one page may; else null. */
  readonly searchedTo: string | null;
};

export type AgentName = { readonly id: string; readonly name: string };

/** A search for a payee reads warrants this many at a time, and no more than the second number for a page: no index has payees. */
const STEP = 250;
const SEARCHED_MAX = 1_000;

export async function listWarrantsForPeople(ctx: Context, caller: Caller, asked: ListAsked) {
  const refused = refuseAccess(caller, ACCESS.readWarrants);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const agents = await reader.agents.list(caller);
    const named = agents.find(({ id, name }) => asked.search === id || asked.search === name);
    const agentId = named?.id ?? asked.agentId;
    const filter: WarrantFilter = {
      ...(asked.state !== null && { state: asked.state }),
      ...(agentId !== null && { agentId }),
    };
    const page = await pageOf(reader, caller, named ? { ...asked, search: "" } : asked, filter);
    return { page, agents: agents.map(({ id, name }): AgentName => ({ id, name })) };
  });
}

async function pageOf(
  reader: Reader,
  caller: Caller,
  asked: ListAsked,
  filter: WarrantFilter,
): Promise<ListedPage> {
  const { search, sort, offset } = asked;
  if (isId("warrant", search)) {
    const found = await reader.warrants.get(caller, search);
    return { warrants: found ? [found] : [], hasNewer: false, hasOlder: false, searchedTo: null };
  }
  if (search !== "") return searchPayees(reader, caller, asked, filter);
  if (sort === "created") return byCreation(reader, caller, asked, filter);
  const rows = await reader.warrants.byDeadline(caller, filter, offset, PAGE_SIZE + 1);
  return {
    warrants: rows.slice(0, PAGE_SIZE),
    hasNewer: offset > 0,
    hasOlder: rows.length > PAGE_SIZE,
    searchedTo: null,
  };
}

async function byCreation(
  reader: Reader,
  caller: Caller,
  asked: ListAsked,
  filter: WarrantFilter,
): Promise<ListedPage> {
  const { rows, ...page } = await readPage(asked, (cursor, limit) =>
    reader.warrants.byCreation(caller, filter, cursor, limit),
  );
  return { ...page, warrants: rows, searchedTo: null };
}

/** The newest warrants whose payee contains the text, whatever its capitals, of as many as one page may look at. */
async function searchPayees(
  reader: Reader,
  caller: Caller,
  { search, olderThan }: ListAsked,
  filter: WarrantFilter,
): Promise<ListedPage> {
  const wanted = search.toLowerCase();
  const warrants: Warrant[] = [];
  let last = olderThan;
  for (let looked = 0; looked < SEARCHED_MAX; looked += STEP) {
    const rows = await reader.warrants.byCreation(
      caller,
      filter,
      last === null ? {} : { olderThan: last },
      STEP,
    );
    for (const row of rows) {
      if (row.payee.toLowerCase().includes(wanted)) warrants.push(row);
      last = row.id;
      if (warrants.length === PAGE_SIZE) break;
    }
    if (warrants.length === PAGE_SIZE) break;
    if (rows.length < STEP) return { warrants, hasNewer: false, hasOlder: false, searchedTo: null };
  }
  return { warrants, hasNewer: false, hasOlder: true, searchedTo: last };
}

/** What a form for a new warrant offers: the agents and the saved clauses. */
export async function readOpeningChoices(ctx: Context, caller: Caller) {
  const refused = refuseAccess(caller, ACCESS.openWarrant);
  if (refused) return refused;
  return ctx.store.read(async ({ agents, verifiers, balances }) => ({
    agents: (await agents.list(caller)).filter(({ status }) => status === "active"),
    verifiers: await verifiers.list(caller.organisationId),
    balances: await balances.list(caller),
  }));
}
