import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from '@latchkey/kit/redis';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { channelOf } from '../fan-out/application-channel.ts';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { clientFrame, closeFrame, OPCODE, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode } from '../testing/test-node.ts';

const ROUNDS = 2_000;
const AT_ONCE = 50;

let apps: FakeApps;
let application: FakeApplication;
let redisUrl: string;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  redisUrl = (await testRedis()).url;
});

/** Numbers from 0 to below `max` that follow from a seed (mulberry32). */
function seeded(seed: number) {
  let state = seed;
  return (max: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * max);
  };
}

/** Calls back for all rounds, some at once. */
async function inRounds(count: number, round: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await round(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Sends bytes, hears the other side out, and answers what it said. */
async function exchange(port: number, bytes: Buffer): Promise<string> {
  const client = await openRawClient(port);
  client.socket.once('end', () => client.socket.end());
  client.socket.end(bytes);
  await client.ended;
  return client.received();
}

const collectGarbage = () => {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
};

describe('a node', { timeout: 60_000 }, () => {
  it(`lives on, whatever it is sent in ${ROUNDS} rounds`, async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = seeded(seed);
    const node = await startNode(apps, redisUrl, { rejectionsPerMinute: 1_000_000 });
    const pieces = [
      ': ',
      '\r\n',
      '\r\n\r\n',
      '\0',
      '\x80',
      'Content-Length: 3',
      'Transfer-Encoding: chunked',
      'Upgrade: x',
      'HTTP/1.1',
    ];
    const mutate = (text: string) => {
      const bytes = Buffer.from(text);
      const at = random(bytes.byteLength);
      const piece = random(2) ? Buffer.from(pieces[random(pieces.length)] as string) : Buffer.from([random(256)]);
      return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + random(3))]);
    };
    const noise = () => Buffer.from(Array.from({ length: random(300) }, () => random(256)));
    const frame = () =>
      clientFrame(random(16), noise(), { isFinal: random(2) > 0, reservedBits: random(8) ? 0 : 16 << random(3) });
    const request = upgradeRequest(application.socketKey);
    const kinds = [
      () => noise(),
      () => mutate(request),
      () => Buffer.concat([Buffer.from(request), noise()]),
      () => Buffer.concat([Buffer.from(request), frame(), frame(), frame()]),
    ];
    const odd: string[] = [];
    await inRounds(ROUNDS, async () => {
      const bytes = (kinds[random(kinds.length)] as () => Buffer)();
      const said = await exchange(node.port, bytes);
      const isEnvelope = said.includes('"success":false,"code":"') && !said.startsWith('HTTP/1.1 5');
      if (said !== '' && !said.startsWith('HTTP/1.1 101') && !isEnvelope) odd.push(`${bytes.toString('latin1')} -> ${said}`);
    });
    expect(odd, `seed ${seed}`).toEqual([]);
    const client = node.connect(application.socketKey);
    expect(await client.ready()).toMatchObject({ data: { resumed: false } });
    expect(node.lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  });

  it('holds nothing any more for 1,000 hostile clients when they are gone', async () => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_MAX: '1000' } });
    const misdeeds = [
      () => Buffer.alloc(64 * 1024, clientFrame(OPCODE.ping)),
      () => clientFrame(OPCODE.binary, 'x'),
      () => clientFrame(OPCODE.text, 'x'.repeat(5_000)),
      () => clientFrame(OPCODE.text, 'x', { isFinal: false }),
      () => Buffer.from([0xff]),
      () => closeFrame(1000),
    ];
    const misbehave = async (count: number) => {
      await inRounds(count, async (i) => {
        const client = await openRawClient(node.port);
        client.socket.write(upgradeRequest(application.socketKey));
        await once(client.socket, 'data');
        client.socket.write((misdeeds[i % misdeeds.length] as () => Buffer)());
        if (i % 2) client.socket.resetAndDestroy();
        else client.socket.destroySoon();
        await client.ended;
      });
      const closed = () => node.lines.filter(({ msg }) => msg === 'socket closed').length;
      await eventually(() => expect(closed()).toBe(count), { timeoutMs: 20_000 });
      node.lines.length = 0;
    };
    const heldBytes = () => {
      collectGarbage();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    await misbehave(500);
    const before = heldBytes();
    await misbehave(1_000);
    // A socket that is held takes 10 KiB.
    await eventually(() => expect(heldBytes() - before).toBeLessThan(1_000 * 2_048));
    const redis = new Redis(redisUrl);
    onTestFinished(() => redis.disconnect());
    await eventually(async () => expect((await redis.pubsub('NUMSUB', channelOf(redis, application.id)))[1]).toBe(0));
  });
});
