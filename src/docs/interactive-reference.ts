import scalar from "@scalar/standalone" with { type: "file" };
import start from "./interactive-start.js" with { type: "text" };

/**
 * The API reference in Scalar, which draws the OpenAPI document in the browser, with examples in many languages. It is the build of
 * Scalar for browsers, as the package for Fastify brings it: one file, without the 295 packages that it is made of.
 */

export const INTERACTIVE = "/docs/api-reference/interactive";
export const START = { path: "/docs/api-reference/interactive.js", body: start };
export const SCALAR = "/docs/api-reference/scalar.js";

let text: Promise<string> | null = null;

/** Scalar's text, which is read once: it is the longest answer that anybody may have. */
export const scalarText = (): Promise<string> => {
  text ??= Bun.file(scalar).text();
  return text;
};

/** Scalar makes its own style elements, so its page alone allows them. */
export const ALLOWED = [
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "connect-src 'self'",
  "img-src 'self' data:",
];

export const interactivePage = (): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The API, interactive · Holdfast</title>
<script type="module" src="${START.path}"></script>
</head>
<body>
<noscript><p>This page needs a script. <a href="/docs/api-reference">The API reference</a> does not.</p></noscript>
<div id="reference"></div>
</body>
</html>
`;
