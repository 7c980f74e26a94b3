/** Statements of many rows, as a batch sends them, on the ledger of `createGuardedLedger`. */

export const aWarrant = "FROM warrants WHERE id = 'wrt_bare'";
export const held =
  "SELECT nextval('positions'), account, 'hold', 'live_book', position, -amount, amount, 0, 0, 0, 0, 0";
export const refunded =
  "SELECT nextval('positions'), account, 'settlement', 'live_book', position, amount, -amount, 0, 0, 0, 0, 0";
export const POSTINGS =
  "INSERT INTO postings (position, account, kind, rail, cause, available, held, paid, funding, recorded_at, payable, submitted)";

export const ofPayout = (id: string, kind: string, payable: string, submitted: string) =>
  `SELECT nextval('positions'), account, '${kind}', rail, position, 0, 0, 0, 0, 0, ${payable}, ${submitted} FROM payouts WHERE id = 'pay_${id}'`;

/** A statement with one row that is right, and one with a wrong row besides. */
const copies = (table: string, from: string, right: string, wrong: string) => {
  const [alone = "", both = ""] = [`('{${right}}')`, `('{${right}}'), ('{${wrong}}')`].map(
    (rows) =>
      `INSERT INTO ${table} SELECT (json_populate_record(one, changed::json)).*
       FROM ${table} AS one, (VALUES ${rows}) AS changes (changed) WHERE ${from}`,
  );
  return [alone, both] as const;
};
const two = (right: string, wrong: string) =>
  [`${POSTINGS} ${right}`, `${POSTINGS} ${right} UNION ALL ${wrong}`] as const;
const holdBare = `${held} ${aWarrant}`;
const holdOther = `${held} FROM warrants WHERE id = 'wrt_sandbox'`;
const refundOf = (id: string) => `${refunded} FROM warrants WHERE id = '${id}'`;
const bring = (cause: string) =>
  `SELECT nextval('positions'), account, 'deposit', 'live_book', ${cause}, amount, 0, 0, -amount, 0, 0, 0 FROM deposits WHERE id = 'dep_bare'`;
const correct = (cause: string) =>
  `SELECT nextval('positions'), account, 'correction', 'live_book', ${cause}, amount_after - amount_before, 0, 0, amount_before - amount_after, 0, 0, 0 FROM corrections WHERE id = 'cor_recorded'`;
const submit = (id: string) => ofPayout(id, "payout_submitted", "-amount", "amount");

/** A row that is refused in a statement with a row that is right, which is taken alone; and with which words. */
export const AMONG_OTHERS: readonly (readonly [
  name: string,
  statements: readonly [right: string, withWrong: string],
  problem: string,
])[] = [
  [
    "a warrant of another scope",
    copies(
      "warrants",
      "id = 'wrt_bare'",
      '"id": "wrt_1", "position": null',
      '"id": "wrt_2", "position": null, "scope": 7777',
    ),
    "a warrant is held from an account of its scope",
  ],
  [
    "a check of no warrant",
    copies(
      "checks",
      "position = (SELECT min(position) FROM checks)",
      '"id": "chk_1", "position": null',
      '"id": "chk_2", "position": null, "warrant": 7777',
    ),
    "a check belongs to a warrant",
  ],
  [
    "a key of no scope",
    copies(
      "idempotency_keys",
      "key = 'in flight'",
      '"key": "1", "holder": "wrt_1", "position": null',
      '"key": "2", "holder": "wrt_2", "position": null, "scope": 7777',
    ),
    "an idempotency key belongs to a scope",
  ],
  [
    "a delivery in another mode",
    copies(
      "webhook_deliveries",
      "id = 'del_pending'",
      '"id": "del_1", "rowid": null',
      '"id": "del_2", "rowid": null, "mode": "sandbox"',
    ),
    "a delivery has its endpoint's organisation and mode",
  ],
  [
    "a posting of no kind",
    two(holdBare, holdOther.replace("'hold'", "'gift'").replace("live_book", "sandbox_book")),
    "a posting is a deposit or its correction, a hold, a settlement, or a move of a payout",
  ],
  [
    "a posting in another mode",
    two(holdBare, holdOther),
    "a posting moves an account of the mode of its rail",
  ],
  [
    "a hold of too much",
    two(
      holdBare,
      holdOther.replace("live_book", "sandbox_book").replace("-amount, amount", "-amount - 1, amount + 1"),
    ),
    "a hold is the amount of a warrant of the same account",
  ],
  [
    "a refund of what was released",
    two(refundOf("wrt_refunded"), refundOf("wrt_released")),
    "a settlement is what its warrant says, of the same account",
  ],
  [
    "a deposit that is not there",
    two(bring("position"), bring("7777")),
    "a posting brings the amount of a deposit of the same account",
  ],
  [
    "a correction that is not there",
    two(correct("position"), correct("7777")),
    "a correction is posted once it is recorded, to the account of its deposit",
  ],
  [
    "a payout that has failed",
    two(submit("submitted"), submit("failed")),
    "a payout is posted as it says, to the account of its payee",
  ],
  [
    "a payout that was not signed",
    two(submit("onchain"), submit("unsent")),
    "a payout on a chain has its transaction",
  ],
];
