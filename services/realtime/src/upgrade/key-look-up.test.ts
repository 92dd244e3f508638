import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { createAppsClient } from '../event/apps-client.ts';
import { FakeApps } from '../testing/fake-apps.ts';
import { KeyLookUp, LOOK_UPS_MAX, LOOK_UPS_PER_NETWORK } from './key-look-up.ts';

const REFUSED = { reason: 'dependency_unavailable' };

function start(waitMs = 4_000) {
  const apps = new FakeApps();
  const application = apps.create();
  const lookUps = new KeyLookUp(createAppsClient(apps.transport), waitMs);
  const { promise: gate, resolve: answer } = Promise.withResolvers<void>();
  apps.waitFor(gate);
  const ask = (network: string, key = apps.create().socketKey) => lookUps.verify({ key, network, requestId: 'r' });
  /** Many keys that a network presents, each with what becomes of it. */
  const flood = (network: string, size: number) =>
    Array.from({ length: size }, () =>
      ask(network).then(
        () => 'found',
        ({ reason }) => reason,
      ),
    );
  return { apps, application, answer, ask, flood };
}

it('leave room for others, whatever one network asks', async () => {
  const { apps, application, answer, ask, flood } = start();
  const flooded = flood('flooding', LOOK_UPS_PER_NETWORK);
  await expect(async () => ask('flooding', application.socketKey)).rejects.toMatchObject(REFUSED);
  await eventually(() => expect(apps.calls.lookUp).toBe(8));
  apps.waitFor(undefined);
  expect(await ask('other', application.socketKey)).toMatchObject({ holder: { applicationId: application.id } });
  expect(apps.calls.lookUp).toBe(9);
  answer();
  expect(new Set(await Promise.all(flooded))).toEqual(new Set(['found']));
  expect(await ask('flooding', application.socketKey)).toMatchObject({ holder: { applicationId: application.id } });
});

it('are refused at once where too many wait in all', async () => {
  const { application, answer, ask, flood } = start();
  const networks = Array.from({ length: LOOK_UPS_MAX / LOOK_UPS_PER_NETWORK }, (_, i) => `network ${i}`);
  const flooded = networks.flatMap((network) => flood(network, LOOK_UPS_PER_NETWORK));
  await expect(async () => ask('other', application.socketKey)).rejects.toMatchObject(REFUSED);
  answer();
  await Promise.all(flooded);
  expect(await ask('other', application.socketKey)).toMatchObject({ holder: { applicationId: application.id } });
});

it('of clients that have gone are not made', async () => {
  const { apps, answer, flood } = start(0);
  const all = Promise.all(flood('gone', 20));
  answer();
  expect(new Set(await all)).toEqual(new Set(['dependency_unavailable']));
  expect(apps.calls.lookUp).toBe(0);
});

it('of one key at the same time are one', async () => {
  const { apps, application, answer, ask } = start();
  const first = ask('a', application.socketKey);
  await eventually(() => expect(apps.calls.lookUp).toBe(1));
  const others = Array.from({ length: 100 }, (_, i) => ask(`network ${i}`, application.socketKey));
  answer();
  await Promise.all([first, ...others]);
  expect(apps.calls.lookUp).toBe(2);
});
