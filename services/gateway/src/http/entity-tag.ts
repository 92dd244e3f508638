const ENTITY_TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * True if an `If-None-Match` header names an entity, by weak comparison (RFC 9110, 13.1.2).
 *
 * @param etag with its quotation marks
 */
export function namesEntity(field: string, etag: string): boolean {
  return field.trim() === '*' || [...field.matchAll(ENTITY_TAG)].some(([, tag]) => tag === etag);
}
