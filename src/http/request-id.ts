const ECHOED = /^[\x20-\x7e]{1,200}$/;

/**
 * The id that `X-Request-Id` answers: the caller's own where it is 1 to 200 printable ASCII characters,
 * otherwise ours.
 */
export function echoedRequestId(headers: Headers, requestId: string): string {
  const given = headers.get("x-request-id");
  return given !== null && ECHOED.test(given) ? given : requestId;
}
