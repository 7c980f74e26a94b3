import { expect, test } from "bun:test";
import type { OpenApi } from "../../src/docs/api-reference.ts";
import { searchPage as pageOf } from "../../src/docs/pages.ts";
import { createSearch, type Place } from "../../src/docs/search.ts";
import { openApiDocument } from "../../src/http/app.ts";

const searchPage = (query: string): string => pageOf(query, () => openApiDocument() as OpenApi);

const place = (title: string, text: string, page = "A page"): Place => ({
  id: title,
  title,
  text,
  page,
  path: "/docs/a",
});
const search = createSearch([
  place("Deadlines", "What expires returns."),
  place("Shares", "The deadline does not matter to shares, nor do deadlines of others."),
  place("deadline_in_past", "Send a later one."),
  place("Webhooks", "An expiry fires an event."),
]);
const titlesFor = (query: string): string[] => search(query).map(({ title }) => title);

test("a heading comes before text, a whole word before its beginning, and every word must be there", () => {
  expect(titlesFor("deadlines")).toEqual(["Deadlines", "Shares"]);
  expect(titlesFor("deadline")).toEqual(["deadline_in_past", "Deadlines", "Shares"]);
  expect(titlesFor("DEADLINE shares")).toEqual(["Shares"]);
  expect(titlesFor("deadline_in_past")).toEqual(["deadline_in_past"]);
  expect(titlesFor("expir event")).toEqual(["Webhooks"]);
  expect(titlesFor("nowhere")).toEqual([]);
  expect(titlesFor(" .-* ")).toEqual([]);
});

test("the pages are found by what they say, and lead to the section", () => {
  const linksFor = (query: string) =>
    [
      ...searchPage(query)
        .split('id="results"')[1]!
        .matchAll(/<li><a href="([^"]*)"/g),
    ].map(([, link]) => link);
  expect(linksFor("insufficient_funds")[0]).toBe("/docs/api-reference/errors#insufficient_funds");
  expect(linksFor("warrants verify")).toContain("/docs/api-reference#postV1WarrantsIdVerify");
  expect(linksFor("HOLDFAST_BACKUP_KEEP")).toContain("/docs/configuration#backups");
  expect(linksFor("webhooks redeliver")[0]).toBe("/docs/commands#holdfast-webhooks-redeliver");
});

test("what was asked is shown as text", () => {
  const page = searchPage('"><script>alert(1)</script>');
  expect(page).not.toContain("<script>alert");
  expect(page).toContain("&quot;&gt;&lt;script&gt;");
});
