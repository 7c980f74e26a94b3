import { until } from "../support/until.ts";
import type { Knowledge } from "./knowledge.ts";
import { createKnownMoney, type KnownMoney } from "./known-money.ts";
import { BUSY, UNSHARED } from "./load.ts";
import { createTasks, type Task } from "./money-tasks.ts";
import type { Credentials, Parties } from "./parties.ts";
import type { Attempt, Program } from "./program.ts";
import type { Random } from "./random.ts";

/**
 * Who records money in and out while the server runs and is killed: deposits with references, corrections and payouts, by commands
 * of the machine, which may be killed with the server, and by forms of the console. What was not answered is done again.
 */
export type Desk = {
  readonly known: KnownMoney;
  /** Works beside the load until it is stopped. Resolves when its last command has ended. */
  work(url: string): Promise<void>;
  /** From now on the server's clock is wrong, and sign-ins may have ended. */
  jumped(): void;
  /** From now on whatever is neither done nor refused as it must be may have been done: it is not answered. */
  breaks(): void;
  /** Nothing new is begun. `cuts`: commands that still run are killed. */
  stop(cuts: boolean): void;
  /** Does again what was not answered. */
  again(url: string): Promise<void>;
};

const WORKERS = 3;

/** The lines of the tally. */
const DONE = {
  deposit: "deposits",
  correction: "corrections",
  submit: "runs of payouts submit",
  paid: "payouts paid",
  failed: "payouts failed",
  returned: "payouts that came back",
  assigned: "transfers of strangers assigned",
} as const;
const WRONG = "wrong orders of money refused";
const AGAIN = "money in and out, done again after a kill";
const LATE = "forms that came after a sign-in had ended";
export const DESK_TALLY = [...Object.values(DONE), WRONG, LATE, AGAIN] as const;

/** How long what was not answered is done again. */
const AGAIN_MS = 60_000;

/** What somebody gets whose sign-in has ended. Nothing was done then. */
const SIGNED_OUT = "not_authenticated";

/** @param count is told what was done */
export function createDesk(
  program: Program,
  { organisationId, people }: Parties,
  { funded }: Knowledge,
  random: Random,
  count: (what: string) => void,
): Desk {
  const known = createKnownMoney(funded);
  /** Deposits, payouts and transfers of which something is not answered yet. */
  const busy = new Set<string>();
  const unanswered: Task[] = [];
  const nextTask = createTasks(organisationId, known, random, (id) => busy.has(id));
  let stopping = false;
  let hasJumped = false;
  let breaking = false;
  let cut = new AbortController();

  async function send(task: Task, url: string): Promise<Attempt> {
    const { form, command, mode } = task;
    const isForm = form !== null && random.chance(0.6);
    const asked = isForm
      ? submitForm(url, form, mode, people[mode].admin)
      : program.attempt(command, cut.signal);
    const answer = await asked.catch((error: unknown) => {
      if (!breaking && !(isForm && stopping)) throw error;
      return null;
    });
    const isWhole = answer !== null && (answer.refused === null || answer.refused === task.refusal);
    return (breaking && !isWhole) || answer?.refused === BUSY ? null : answer;
  }

  function learn(task: Task, answer: NonNullable<Attempt>): void {
    const { refused } = answer;
    if (refused !== task.refusal && !(hasJumped && refused === SIGNED_OUT))
      throw new Error(`${task.command.join(" ")}: ${JSON.stringify(answer)}`);
    if (refused === null) learnDone(known, task, answer.shown);
    count(refused === null ? DONE[task.kind] : refused === task.refusal ? WRONG : LATE);
  }

  async function act(task: Task, url: string): Promise<void> {
    if (task.about !== null) busy.add(task.about);
    // Sometimes two do the same at the same time.
    const both = random.chance(0.15) ? [send(task, url), send(task, url)] : [send(task, url)];
    const answers = await Promise.all(both);
    for (const answer of answers) if (answer !== null) learn(task, answer);
    if (answers.includes(null)) unanswered.push(task);
    else if (task.about !== null) busy.delete(task.about);
  }

  function begin(): void {
    stopping = false;
    hasJumped = false;
    breaking = false;
    cut = new AbortController();
  }

  return {
    known,
    async work(url) {
      begin();
      const worker = async () => {
        while (!stopping) await act(nextTask(), url);
      };
      await Promise.all(Array.from({ length: WORKERS }, worker));
    },
    jumped() {
      hasJumped = true;
    },
    breaks() {
      breaking = true;
    },
    stop(cuts) {
      stopping = true;
      if (cuts) cut.abort();
    },
    async again(url) {
      begin();
      await until(
        "everything is done that was not answered",
        async () => {
          for (const task of unanswered.splice(0)) {
            await act(task, url);
            count(AGAIN);
          }
          return unanswered.length === 0;
        },
        AGAIN_MS,
      );
    },
  };
}

function learnDone(
  known: KnownMoney,
  { kind, mode, about, command }: Task,
  shown: NonNullable<Attempt>["shown"],
): void {
  if (kind === "deposit" && !command.includes(shown.reference))
    throw new Error(`${command.join(" ")}: ${JSON.stringify(shown)}`);
  if (kind === "deposit") known.learnDeposit(mode, shown);
  else if (kind === "correction") known.learnCorrection(shown);
  else if (kind === "assigned") known.learnAssigned(about ?? "");
  // A form shows no ids.
  else if (kind === "submit") for (const { id } of shown?.data ?? []) known.learnSubmitted({ id, mode });
  else known.learnEnd(about ?? "", kind === "paid" ? "paid" : "failed");
}

/** Sends a form of the console, as a browser does. */
async function submitForm(
  url: string,
  { path, fields }: NonNullable<Task["form"]>,
  mode: string,
  as: Credentials,
): Promise<Attempt> {
  const response = await fetch(`${url}/console/money/payouts/${path}`, {
    ...UNSHARED,
    method: "POST",
    headers: { ...as, origin: `http://localhost:${new URL(url).port}`, "sec-fetch-site": "same-origin" },
    body: new URLSearchParams({ ...fields, _key: crypto.randomUUID(), _mode: mode }),
    redirect: "manual",
  });
  const text = await response.text();
  const to = response.headers.get("location") ?? "";
  if (response.status === 303 && to.includes("?done=")) return { refused: null, shown: null };
  if (response.status === 303 && to.includes("/sign-in")) return { refused: SIGNED_OUT, shown: null };
  // The page of a refusal leads to its code; a form that is shown again has its status alone.
  const [, code = response.status === 409 ? "illegal_transition" : text] =
    /errors#([a-z_]+)/.exec(text) ?? [];
  return { refused: code, shown: null };
}
