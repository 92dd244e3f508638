/** The token of a mailed link. It is in the fragment, which browsers send to no server. */
export function readMailedToken(): string | undefined {
  return new URLSearchParams(window.location.hash.slice(1)).get('token') ?? undefined;
}
