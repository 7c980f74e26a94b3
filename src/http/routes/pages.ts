import { noQuery } from "../../resources/input.ts";
import { refuseUnknownRoute } from "../errors.ts";
import { text } from "../pages.ts";
import { get, type Route, route } from "../route.ts";

const file = (path: string, summary: string, answers: `text/${string}`): Route =>
  get(
    path,
    {
      query: noQuery,
      detail: route({
        tags: ["Pages"],
        summary,
        answers,
        access: null,
        bucket: "read",
        responses: { "200": "The file." },
      }),
    },
    ({ setup }) => {
      const found = setup.pages[path];
      if (!found) return refuseUnknownRoute("GET", path);
      return text(found.type, found.body);
    },
  );

/** What the page of a receipt loads. The console has their contents. */
export const pageRoutes: readonly Route[] = [
  file("/console/receipt.js", "The script of a receipt's page", "text/javascript"),
  file("/console/receipt.css", "The stylesheet of a receipt's page", "text/css"),
];
