import type { NamedSchema } from "../core/named-schema.ts";
import type { Policy } from "../core/policy.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Part } from "./scope.ts";

/** Which policy: its name, and the agent whose own it is. */
export type PolicyPlace = { readonly name: string; readonly agentId: string | null };
type Owned = { readonly organisationId: string };

/** The part of the reads that is about what decides: policies, saved clauses and schemas. */
export interface RulesReader {
  readonly policies: {
    /** Every version: by name, and the newest first within each. All of them where no part is asked for. */
    list(organisationId: string, part?: Part): Promise<readonly Policy[]>;
    ofOrganisation(organisationId: string): Promise<Policy | null>;
    /** One version of the organisation, by its id. */
    get(organisationId: string, id: string): Promise<Policy | null>;
    /** The newest version of each name, by name and agent, after the given ones. An agent's own is beside the organisation's. */
    newest(organisationId: string, after: PolicyPlace | null, limit: number): Promise<readonly Policy[]>;
    /** The versions of a name that are older than one, newest first. */
    versions(place: PolicyPlace & Owned, olderThan: number, limit: number): Promise<readonly Policy[]>;
  };
  readonly verifiers: {
    /** In the order of ids; all of them where no part is asked for. */
    list(organisationId: string, part?: Part): Promise<readonly SavedVerifier[]>;
    get(organisationId: string, id: string): Promise<SavedVerifier | null>;
    /** Newest first, those older than the given one. */
    page(organisationId: string, olderThan: string | null, limit: number): Promise<readonly SavedVerifier[]>;
  };
  readonly schemas: {
    get(organisationId: string, id: string): Promise<NamedSchema | null>;
    /** By name, after the given one, so that the versions of a schema stand together. */
    page(organisationId: string, after: string, limit: number): Promise<readonly NamedSchema[]>;
    named(organisationId: string, names: readonly string[]): Promise<readonly NamedSchema[]>;
  };
}
