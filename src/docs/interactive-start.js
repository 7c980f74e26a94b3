/** The page of the API reference in Scalar. Nothing that it does leaves this service, and it sends no request of its own. */
import "/docs/api-reference/scalar.js";

globalThis.Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  // Its fonts, its client, its assistant and its telemetry are elsewhere.
  withDefaultFonts: false,
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  telemetry: false,
  showDeveloperTools: "never",
  // A key that is typed into a page of documentation would be kept by the browser.
  hideTestRequestButton: true,
  persistAuth: false,
});
