import { createLogger } from '@latchkey/kit/log/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { createAppsClient } from '../event/apps-client.ts';
import type { LiveSocket } from '../socket/live-socket.ts';
import { FakeApps } from '../testing/fake-apps.ts';
import { createHubs } from './hubs.ts';
import { HUBS_PER_CALL } from './reconciler.ts';

const HUBS = 4 * HUBS_PER_CALL;

/** A node with a socket of each of many applications, and the sizes of its subscriptions. */
function open() {
  const apps = new FakeApps();
  const sizes: number[] = [];
  const channels = { subscribe: async (ids: readonly string[]) => void sizes.push(ids.length), unsubscribe: () => undefined };
  const hubs = createHubs({ apps: createAppsClient(apps.transport), channels, logger: createLogger('test', 'silent') });
  for (let i = 0; i < HUBS; i += 1) {
    const { id: applicationId, socketKey } = apps.create();
    const socket = { onGone: () => undefined, keyFingerprint: socketKey.slice(-6) } as unknown as LiveSocket;
    const { keyFingerprint } = socket;
    hubs.join({ applicationId, accountId: '', lastSequence: 0, epoch: apps.epoch, keyFingerprint }, () => socket);
  }
  return { apps, hubs, sizes };
}

it('the applications of clients that connect together share subscriptions', async () => {
  const { apps, sizes } = open();
  await eventually(() => expect(apps.calls.states).toBeGreaterThan(0));
  expect(sizes).toEqual([HUBS_PER_CALL, HUBS_PER_CALL, HUBS_PER_CALL, HUBS_PER_CALL]);
});

it('thousands of applications are reconciled in concurrent calls', async () => {
  const { apps, hubs } = open();
  await eventually(() => expect(apps.calls.states).toBeGreaterThan(0));
  await hubs.reconcileAll();
  const before = apps.calls.states;
  const release = apps.hold();
  const reconciled = hubs.reconcileAll();
  await eventually(() => expect(apps.calls.states).toBe(before + HUBS / HUBS_PER_CALL));
  release();
  await reconciled;
});
