/** Pages as answers: what they may load is said with each (Content-Security-Policy), and is of our own always. */

/** A page, a script or a stylesheet, by its path; the composition root hands them over. */
export type Pages = Readonly<Record<string, { readonly type: string; readonly body: string }>>;

/** @param allowed the directives of what the page needs, such as `style-src 'self'` */
export const respondHtml = (html: string, allowed: readonly string[]): Response =>
  new Response(html, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": [
        "default-src 'none'",
        ...allowed,
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ].join("; "),
      "Referrer-Policy": "no-referrer",
    },
  });

export const respondText = (type: string, text: string): Response =>
  new Response(text, { headers: { "Content-Type": `${type}; charset=utf-8` } });
