import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Counter, Gauge, startMeasuring, watchProbe } from './metrics.ts';

const early = new Counter({ name: 'latchkey_early_total', help: 'Defined before recording starts.', labels: ['kind'] });
const connections = new Gauge({ name: 'latchkey_connections', help: 'Of several sources.', labels: ['schema'] });
const read = new Gauge({ name: 'latchkey_read', help: 'Takes a query.' });

early.add(5, 'before');
const recorder = await startMeasuring('test');

/** The lines of one metric. */
async function linesOf(name: string): Promise<string[]> {
  const text = await recorder.render();
  return text.split('\n').filter((line) => line.startsWith(name));
}

describe('a metric', () => {
  it('counts by labels from the start of recording, and starts at 0 without labels', async () => {
    const plain = new Counter({ name: 'latchkey_plain_total', help: 'Without labels.' });
    expect(await linesOf('latchkey_plain_total')).toEqual(['latchkey_plain_total 0']);
    plain.add(2);
    early.add(1, 'after');
    early.add(1, 'after');
    expect(await linesOf('latchkey_plain_total')).toEqual(['latchkey_plain_total 2']);
    expect(await linesOf('latchkey_early_total')).toEqual(['latchkey_early_total{kind="after"} 2']);
  });

  it('adds up all sources of a gauge, without those that ended', async () => {
    const unwatch = connections.watch(() => [[2, 'apps']]);
    connections.watch(() => [[3, 'apps']]);
    expect(await linesOf('latchkey_connections')).toEqual(['latchkey_connections{schema="apps"} 5']);
    unwatch();
    expect(await linesOf('latchkey_connections')).toEqual(['latchkey_connections{schema="apps"} 3']);
  });
});

describe('a probe', () => {
  const open = (options: { answer: () => Promise<number>; ageMsMax?: number }) => {
    const asked = vi.fn(options.answer);
    onTestFinished(watchProbe('test', asked, [[read, (value) => [[value]]]], options.ageMsMax ?? 0));
    const state = async () => [await linesOf('latchkey_read'), (await linesOf('latchkey_probe_up'))[0]?.at(-1)];
    return { asked, state };
  };
  const UP = (value: number) => [[`latchkey_read ${value}`], '1'];
  const DOWN = [[], '0'];

  it('queries once for concurrent scrapes, and again only when its value is too old', async () => {
    const { asked, state } = open({ answer: async () => 7, ageMsMax: 60_000 });
    await Promise.all([recorder.render(), recorder.render()]);
    expect(await state()).toEqual(UP(7));
    expect(asked).toHaveBeenCalledOnce();
  });

  it('does not delay scrapes while its query hangs or fails, and has no value then', async () => {
    let answer: () => Promise<number> = async () => 3;
    const { asked, state } = open({ answer: () => answer() });
    expect(await state()).toEqual(UP(3));
    const { promise, resolve } = Promise.withResolvers<number>();
    answer = () => promise;
    asked.mockClear();
    expect(await state()).toEqual(DOWN);
    expect(asked).toHaveBeenCalledOnce();
    resolve(9);
    await eventually(async () => expect(await state()).toEqual(UP(9)));
    answer = () => Promise.reject(new Error('away'));
    expect(await state()).toEqual(DOWN);
  });
});
