import { countingList } from '@latchkey/testkit/values/counting-list';
import { expect, it } from 'vitest';
import { parseChange } from './api-key-rules.ts';

it.each(['scopes', 'applicationIds'])('rejects too many %s before one is read', (property) => {
  const { list, counts } = countingList(32_000, 'files:read');
  expect(() => parseChange({ [property]: list }, new Date())).toThrow(
    expect.objectContaining({ reason: 'api_key_settings_invalid', details: [expect.objectContaining({ path: property })] }),
  );
  expect(counts.reads).toBe(0);
});
