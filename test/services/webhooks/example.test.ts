import { expect, test } from "bun:test";
import { EVENT_TYPES } from "../../../src/core/warrant.ts";
import { exampleBody } from "../../../src/resources/event.ts";

test("an example of each event says where its warrant went, at which version, and what was paid", () => {
  const examples = EVENT_TYPES.map((event) => {
    const delivery = {
      event,
      eventId: "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV",
      mode: "live",
      organisationId: "org_1",
    };
    const { type, example, data } = JSON.parse(exampleBody(delivery as never));
    return [type, example, data.from, data.to, data.version, data.released_bps];
  });
  expect(examples).toEqual([
    ["warrant.opened", true, null, "held", 1, null],
    ["warrant.verifying", true, "held", "verifying", 2, null],
    ["warrant.released", true, "verifying", "released", 3, 10_000],
    ["warrant.partially_released", true, "verifying", "partially_released", 3, 2_500],
    ["warrant.refunded", true, "verifying", "refunded", 3, null],
  ]);
});
