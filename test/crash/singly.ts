import type { Knowledge, Sent } from "./knowledge.ts";
import { answerAtLast, checkAnswer, freshKey, type Outside, opening } from "./load.ts";
import type { Parties } from "./parties.ts";
import type { Json } from "./program.ts";
import { PAYEES_ON_CHAIN } from "./treasury.ts";

/** Requests beside the load, one after the other. None may be cut off. */

const IDLE_DEADLINE_MS = 1_200_000;

/** Who asks, and what they know. */
type Asking = {
  readonly parties: Parties;
  readonly knowledge: Knowledge;
  readonly outside: Outside;
};

async function ask(url: string, sent: Sent, knowledge: Knowledge): Promise<Json> {
  const answer = await answerAtLast(url, sent);
  checkAnswer(sent, answer);
  knowledge.acknowledge({ sent, answer });
  return JSON.parse(answer.text);
}

/** A warrant that nobody moves, open for a while. */
export async function openIdle(url: string, { parties, knowledge, outside }: Asking): Promise<string> {
  const sent = opening(parties, outside, { deadlineMs: IDLE_DEADLINE_MS, mayMove: false });
  return (await ask(url, sent, knowledge)).id;
}

/** Releases something to a payee of the treasury's chain, so that its wallet has somebody to pay. */
export async function oweOnChain(url: string, { parties, knowledge, outside }: Asking): Promise<void> {
  const payee = PAYEES_ON_CHAIN[outside.random.below(PAYEES_ON_CHAIN.length)] ?? null;
  const opened = opening(parties, outside, { payee, deadlineMs: IDLE_DEADLINE_MS, mayMove: false });
  const { id } = await ask(url, opened, knowledge);
  const { operator } = parties.people.sandbox;
  const path = `/v1/warrants/${id}/release`;
  await ask(url, { key: freshKey(), path, body: "{}", as: operator, opens: null }, knowledge);
}
