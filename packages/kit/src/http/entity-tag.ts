const ENTITY_TAG = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * True if a header names an entity: `If-None-Match` by weak comparison, `If-Match` by strong (RFC
 * 9110, 13.1).
 *
 * @param etag with its quotation marks
 */
export function namesEntity(field: string, etag: string, comparison: 'strong' | 'weak' = 'weak'): boolean {
  const isNamed = ([, weak, tag]: readonly string[]) => tag === etag && (comparison === 'weak' || weak === undefined);
  return field.trim() === '*' || [...field.matchAll(ENTITY_TAG)].some(isNamed);
}
