/** The colours that a person has chosen for this browser. A cookie keeps it, since a phone and a laptop may differ. */
export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const THEME_COOKIE = "console_theme";

export const isTheme = (text: string | undefined): text is Theme => THEMES.some((theme) => theme === text);

export function themeOf(cookies: Pick<Bun.CookieMap, "get">): Theme {
  const kept = cookies.get(THEME_COOKIE) ?? undefined;
  return isTheme(kept) ? kept : "auto";
}
