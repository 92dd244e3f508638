/** What an entry says of a change: names and values as their owner sees them, and never a secret. */
export type Changes = Readonly<Record<string, Value | undefined>>;

type Value = string | number | boolean | null | readonly string[];

const TEXT_LENGTH_MAX = 256;
const LIST_LENGTH_MAX = 20;
const JSON_BYTES_MAX = 4_096;

/**
 * Changes as JSON that PostgreSQL takes, of 4 KiB at most: texts are cut after 256 UTF-16 units, lists after 20 items, and how many there were is said
 * beside them (`levelsCount`). What is still larger, and can hardly be, is left out, as an entry must never be why a change fails.
 */
export function toChangesJson(changes: Changes): string {
  const bounded: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    if (typeof value === 'string') bounded[name] = bound(value);
    else if (typeof value === 'object' && value !== null) {
      bounded[name] = value.slice(0, LIST_LENGTH_MAX).map(bound);
      if (value.length > LIST_LENGTH_MAX) bounded[`${name}Count`] = value.length;
    } else bounded[name] = value;
  }
  const json = JSON.stringify(bounded);
  return Buffer.byteLength(json) > JSON_BYTES_MAX ? '{"omitted":true}' : json;
}

/** Text in which PostgreSQL's `jsonb` finds nothing amiss: no NUL, and no surrogate without its other half. */
function bound(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).replaceAll('\0', '').toWellFormed();
}
