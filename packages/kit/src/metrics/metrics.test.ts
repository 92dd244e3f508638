import { connect } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Counter, Gauge, Histogram, Probe, startMeasuring } from './instrument.ts';
import { startMetricsServer } from './metrics-server.ts';

const TOKEN = 'a-token-that-has-thirty-two-characters';
const early = new Counter({ name: 'latchkey_early_total', help: 'Defined before recording starts.', labels: ['kind'] });
const connections = new Gauge({ name: 'latchkey_connections', help: 'Of several sources.', labels: ['schema'] });
const read = new Gauge({ name: 'latchkey_read', help: 'Takes a query.' });
const took = new Histogram({ name: 'latchkey_took_seconds', help: 'Time.', labels: ['route'], buckets: [0.1, 1] });

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

  it('sorts values into its buckets', async () => {
    const observe = took.child('/a');
    for (const seconds of [0.05, 0.5, 5]) observe?.(seconds);
    const lines = await linesOf('latchkey_took_seconds_bucket');
    expect(lines.map((line) => line.split(' ')[1])).toEqual(['1', '2', '3']);
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
    const probe = new Probe({ name: 'test', read: asked, ageMsMax: options.ageMsMax ?? 0 });
    const ends = [probe.watch(), read.watch(() => (probe.value === undefined ? [] : [[probe.value]]))];
    onTestFinished(() => ends.forEach((end) => void end()));
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

describe('the server of metrics', () => {
  const start = async () => {
    const server = await startMetricsServer({ host: '127.0.0.1', port: 0, token: TOKEN }, recorder);
    onTestFinished(() => server.stop());
    const url = `http://127.0.0.1:${server.port}`;
    return {
      ...server,
      ask: (method: string, path: string, headers = { authorization: `Bearer ${TOKEN}` }) =>
        fetch(url + path, { method, headers }),
    };
  };

  it('answers GET and HEAD of its one path, and nobody without the token whatever they ask for', async () => {
    const { ask } = await start();
    const answer = await ask('GET', '/metrics');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(await answer.text()).toContain('latchkey_process_info{service="test"');
    expect(await (await ask('HEAD', '/metrics')).text()).toBe('');
    expect([(await ask('GET', '/')).status, (await ask('POST', '/metrics')).status]).toEqual([404, 405]);
    for (const path of ['/', '/metrics'])
      expect((await ask('GET', path, { authorization: `Bearer ${TOKEN.slice(1)}` })).status).toBe(401);
  });

  it('holds few connections, closes at once those beyond, and is open to others while one address opens all that it can', async () => {
    const { port, ask } = await start();
    const open = (localAddress: string) => connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
    const sockets = Array.from({ length: 40 }, () => open('127.0.0.2'));
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
    await eventually(() => expect(sockets.filter(({ closed }) => closed)).toHaveLength(32));
    expect((await ask('GET', '/metrics')).status).toBe(200);
    for (const network of ['127.0.0.3', '127.0.0.4', '127.0.0.5']) for (let i = 0; i < 8; i += 1) sockets.push(open(network));
    await eventually(async () => expect(await ask('GET', '/metrics').catch(() => 'refused')).toBe('refused'));
    for (const socket of sockets) socket.destroy();
    await eventually(async () => expect((await ask('GET', '/metrics')).status).toBe(200));
  });
});
