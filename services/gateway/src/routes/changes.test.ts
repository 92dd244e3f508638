import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished } from 'vitest';
import { createChangeStream } from './changes.ts';

it('sends the live clients of ten applications at a time, and those of more without an id, beside other changes', async () => {
  const { stream, receive } = createChangeStream(60_000, async () => undefined);
  onTestFinished(() => void stream.destroy());
  const ids = Array.from({ length: 200 }, (_, i) => String(i));
  for (const applicationId of ids) receive({ kind: 'live_clients', applicationId });
  receive({ kind: 'file', applicationId: '0' });
  let text = '';
  stream.on('data', (chunk) => {
    text += chunk;
  });
  await eventually(() => expect(text).toContain('data: '), { timeoutMs: 10_000 });
  const changes = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
  const sent = ids.slice(0, 10).map((applicationId) => ({ kind: 'live_clients', applicationId }));
  expect(changes).toEqual([...sent, { kind: 'live_clients' }, { kind: 'file', applicationId: '0' }]);
});
