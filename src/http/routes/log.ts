import { TILE_WIDTH } from "../../core/tiles.ts";
import { noQuery } from "../../resources/input.ts";
import { type AskedTile, readCheckpoint, readTile } from "../../services/log/read.ts";
import { readStatementNote } from "../../services/solvency/read.ts";
import { BYTES, bytes, type Result } from "../answers.ts";
import type { Call } from "../call.ts";
import { refuseUnknownRoute } from "../errors.ts";
import { text } from "../pages.ts";
import { get, type Route, route } from "../route.ts";

/** The log, as monitors read it (C2SP, tlog-tiles). */

const PREFIX = "/.well-known/holdfast";
/** A checkpoint is replaced within seconds. */
const BRIEFLY = "public, max-age=2";
/** What is in a tile never changes, and no statement either. */
const FOREVER = "public, max-age=31536000, immutable";

/**
 * The parts of a tile's path: its index in three digits each, all but the last after an `x`, and perhaps its width. So a route
 * for each number of parts says all paths, up to 256 billion leaves.
 */
const PARTS = [":a", ":a/:b", ":a/:b/:c", ":a/:b/:c/:d"] as const;
const PLACE = /^((?:x[0-9]{3}\/){0,3}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** The tile that a path asks for; null where no tile has such a path. */
function askedTile(level: string, place: string): AskedTile | null {
  const isLevel = /^(?:entries|0|[1-9]|[1-5][0-9]|6[0-3])$/.test(level);
  const [, digits = "", width] = PLACE.exec(place) ?? [];
  const isShortest = !digits.startsWith("x000/");
  if (!isLevel || digits === "" || !isShortest || Number(width ?? 1) >= TILE_WIDTH) return null;
  return {
    level: level === "entries" ? level : Number(level),
    index: Number(digits.replaceAll(/[x/]/g, "")),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
}

async function answerTile({ ctx, params, path }: Call): Promise<Result> {
  const { level = "", a, b, c, d } = params as Readonly<Record<string, string>>;
  const asked = askedTile(level, [a, b, c, d].filter((part) => part !== undefined).join("/"));
  const tile = asked && (await readTile(ctx, asked));
  return tile ? bytes(tile, { "Cache-Control": FOREVER }) : refuseUnknownRoute("GET", path);
}

async function answerStatement({ ctx, path }: Call, number: number | null, caching: string): Promise<Result> {
  const note = await readStatementNote(ctx, number);
  return note === null
    ? refuseUnknownRoute("GET", path)
    : { ...text("text/plain", note), headers: { "Cache-Control": caching } };
}

const tileRoute = (parts: string): Route =>
  get(
    `${PREFIX}/tile/:level/${parts}`,
    {
      query: noQuery,
      detail: route({
        tags: ["Log"],
        summary: "A tile of the log's tree, or of its entries, as C2SP tlog-tiles says",
        access: null,
        bucket: "read",
        answers: BYTES,
        responses: { "200": "The hashes, or the entries.", "404": "route_not_found" },
      }),
    },
    (call) => answerTile(call),
  );

export const logRoutes: readonly Route[] = [
  get(
    `${PREFIX}/checkpoint`,
    {
      query: noQuery,
      detail: route({
        tags: ["Log"],
        summary: "The newest checkpoint of the log: a signed note, as C2SP tlog-checkpoint says",
        access: null,
        bucket: "read",
        answers: "text/plain",
        responses: { "200": "The signed note.", "404": "route_not_found" },
      }),
    },
    async ({ ctx, path }) => {
      const note = await readCheckpoint(ctx);
      return note === null
        ? refuseUnknownRoute("GET", path)
        : { ...text("text/plain", note), headers: { "Cache-Control": BRIEFLY } };
    },
  ),
  ...PARTS.map(tileRoute),
  get(
    `${PREFIX}/solvency`,
    {
      query: noQuery,
      detail: route({
        tags: ["Log"],
        summary: "The newest statement of solvency: a signed note with the sums of what is owed",
        access: null,
        bucket: "read",
        answers: "text/plain",
        responses: { "200": "The signed note.", "404": "route_not_found" },
      }),
    },
    (call) => answerStatement(call, null, BRIEFLY),
  ),
  get(
    `${PREFIX}/solvency/:number`,
    {
      query: noQuery,
      detail: route({
        tags: ["Log"],
        summary: "A statement of solvency by its number",
        access: null,
        bucket: "read",
        answers: "text/plain",
        responses: { "200": "The signed note.", "404": "route_not_found" },
      }),
    },
    (call) => {
      const { number = "" } = call.params as Readonly<Record<string, string>>;
      return /^[1-9][0-9]{0,14}$/.test(number)
        ? answerStatement(call, Number(number), FOREVER)
        : refuseUnknownRoute("GET", call.path);
    },
  ),
];
