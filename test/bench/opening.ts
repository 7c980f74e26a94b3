/** The spec that the bench opens, as a buyer of data would write it, and a deliverable that meets it. */
const spec = {
  clauses: [
    { kind: "http.status", equals: 200 },
    { kind: "json.jsonpath", path: "$.report.status", equals: "complete" },
    { kind: "json.jsonpath", path: "$.report.rows[0].price" },
    { kind: "json.jsonpath", path: "$.report.currency", equals: "EUR" },
  ],
};

export const opening = (deadline: number, amount = "125000", payee = "acct_seller_1") => ({
  ...{ amount, payee, deadline: new Date(deadline).toISOString() },
  spec,
});

export const DELIVERABLE = JSON.stringify({
  report: {
    ...{ status: "complete", currency: "EUR", period: "2026-10" },
    rows: Array.from({ length: 20 }, (_, row) => ({ sku: `item-${row}`, price: 100 + row, stock: 7 * row })),
  },
});
