/** Headers of every response: responses hold keys and settings, which no cache may store. Downloads set their own. */
export const STANDARD_HEADERS = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' } as const;

/** One year, after which a browser may use plain HTTP again. */
const STRICT_TRANSPORT_SECURITY = { 'strict-transport-security': 'max-age=31536000' } as const;

/**
 * The standard headers of a server.
 *
 * @param publicUrl where clients reach it. With https, browsers are told to use nothing else (RFC 6797)
 */
export function standardHeaders(publicUrl: string | undefined): Readonly<Record<string, string>> {
  return { ...STANDARD_HEADERS, ...(publicUrl?.startsWith('https:') && STRICT_TRANSPORT_SECURITY) };
}
