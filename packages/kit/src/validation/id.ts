import { v7 } from 'uuid';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A new id: UUIDv7 (RFC 9562) in canonical text form, later ones sorting after earlier ones. */
export function newId(): string {
  return v7();
}

/** The id in canonical form, or undefined for text other than a UUID. */
export function parseId(text: string): string | undefined {
  if (text.length !== 36) return undefined;
  const lower = text.toLowerCase();
  return UUID.test(lower) ? lower : undefined;
}

/** The nil UUID (RFC 9562, 5.9), which names nothing. */
const NIL = '00000000-0000-0000-0000-000000000000';

/** The id in canonical form. Other text than a UUID names nothing, as an unknown id does. */
export function toId(text: string): string {
  return parseId(text) ?? NIL;
}
