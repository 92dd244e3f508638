import { connect } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Counter, Gauge, Histogram, isMeasuring, recordWith } from './instrument.ts';
import { startMetricsServer } from './metrics-server.ts';
import { Probe } from './probe.ts';
import { PrometheusRecorder } from './prometheus.ts';

const TOKEN = 'a-token-that-has-thirty-two-characters';
const early = new Counter({ name: 'latchkey_early_total', help: 'Defined before anybody measures.', labels: ['kind'] });
const connections = new Gauge({ name: 'latchkey_connections', help: 'Of several sources.', labels: ['schema'] });
const read = new Gauge({ name: 'latchkey_read', help: 'Takes a query.' });
const took = new Histogram({ name: 'latchkey_took_seconds', help: 'Time.', labels: ['route'], buckets: [0.1, 1] });

/** What was recorded while nobody measured. */
const beforeStart = {
  isMeasuring: isMeasuring(),
  child: took.child('/'),
  watch: vi.fn(() => [[1, 'apps'] as const]),
};
early.add(5, 'before');
connections.watch(beforeStart.watch);

let recorder: PrometheusRecorder;
beforeAll(() => {
  recorder = new PrometheusRecorder('test');
  recordWith(recorder);
});

/** The lines of one metric. */
async function linesOf(name: string): Promise<string[]> {
  const text = await recorder.render();
  return text.split('\n').filter((line) => line.startsWith(name));
}

describe('what is measured', () => {
  it('is nothing before anybody asks for it', async () => {
    expect([beforeStart.isMeasuring, beforeStart.child]).toEqual([false, undefined]);
    expect(await linesOf('latchkey_early_total')).toEqual([]);
    expect(await linesOf('latchkey_connections')).toEqual([]);
    expect(beforeStart.watch).not.toHaveBeenCalled();
  });

  it('is counted by labels, and a counter without any is there from the start', async () => {
    const plain = new Counter({ name: 'latchkey_plain_total', help: 'Without labels.' });
    expect(await linesOf('latchkey_plain_total')).toEqual(['latchkey_plain_total 0']);
    plain.add(2);
    early.add(1, 'after');
    early.add(1, 'after');
    expect(await linesOf('latchkey_plain_total')).toEqual(['latchkey_plain_total 2']);
    expect(await linesOf('latchkey_early_total')).toEqual(['latchkey_early_total{kind="after"} 2']);
  });

  it('is sorted into bounds, by what was made once for its labels', async () => {
    const observe = took.child('/a');
    for (const seconds of [0.05, 0.5, 5]) observe?.(seconds);
    const lines = await linesOf('latchkey_took_seconds_bucket');
    expect(lines.map((line) => line.split(' ')[1])).toEqual(['1', '2', '3']);
  });

  it('is read from all sources at once, and no more from one that is gone', async () => {
    const unwatch = connections.watch(() => [[2, 'apps']]);
    connections.watch(() => [
      [3, 'apps'],
      [4, 'files'],
    ]);
    expect(await linesOf('latchkey_connections')).toEqual([
      'latchkey_connections{schema="apps"} 5',
      'latchkey_connections{schema="files"} 4',
    ]);
    unwatch();
    expect((await linesOf('latchkey_connections'))[0]).toBe('latchkey_connections{schema="apps"} 3');
  });
});

describe('what takes a query', () => {
  const open = (options: { answer: () => Promise<number>; ageMsMax?: number }) => {
    const asked = vi.fn(options.answer);
    const probe = new Probe({ name: 'test', read: asked, timeoutMs: 100, ageMsMax: options.ageMsMax ?? 0 });
    const ends = [probe.watch(), read.watch(() => (probe.value === undefined ? [] : [[probe.value]]))];
    onTestFinished(() => ends.forEach((end) => void end()));
    return { asked, value: () => linesOf('latchkey_read'), isUp: async () => (await linesOf('latchkey_probe_up'))[0]?.at(-1) };
  };

  it('is asked once for all who scrape at a time, and not again while the answer is young', async () => {
    const { asked, value } = open({ answer: async () => 7, ageMsMax: 60_000 });
    await Promise.all([recorder.render(), recorder.render(), recorder.render()]);
    expect(await value()).toEqual(['latchkey_read 7']);
    expect(asked).toHaveBeenCalledOnce();
  });

  it('is not waited for, is not asked twice, and is absent until it answers', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const { asked, value, isUp } = open({ answer: () => promise });
    const startedAt = performance.now();
    expect(await value()).toEqual([]);
    expect(await isUp()).toBe('0');
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(asked).toHaveBeenCalledOnce();
    resolve(9);
    await eventually(async () => expect(await value()).toEqual(['latchkey_read 9']));
    expect(await isUp()).toBe('1');
  });

  it('is absent where it answered once and hangs now', async () => {
    let hangs = false;
    const { value, isUp } = open({ answer: () => (hangs ? new Promise<number>(() => undefined) : Promise.resolve(3)) });
    expect(await value()).toEqual(['latchkey_read 3']);
    hangs = true;
    expect([await value(), await isUp()]).toEqual([[], '0']);
  });

  it('is absent where it fails, and there again when it does not', async () => {
    let fails = false;
    const { value, isUp } = open({ answer: async () => (fails ? Promise.reject(new Error('away')) : 1) });
    expect(await value()).toEqual(['latchkey_read 1']);
    fails = true;
    expect([await value(), await isUp()]).toEqual([[], '0']);
    fails = false;
    expect([await value(), await isUp()]).toEqual([['latchkey_read 1'], '1']);
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
