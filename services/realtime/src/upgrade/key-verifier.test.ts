import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { createAppsClient } from '../event/apps-client.ts';
import { FakeApps } from '../testing/fake-apps.ts';
import { CALLS, createKeyVerifier } from './key-verifier.ts';

function start(deadline = Number.POSITIVE_INFINITY) {
  const apps = new FakeApps();
  const { id: applicationId, socketKey } = apps.create();
  const verifyKey = createKeyVerifier(createAppsClient(apps.transport));
  const release = apps.hold();
  const verify = (network: string, key = apps.create().socketKey) => verifyKey({ key, network, requestId: 'r', deadline });
  /** Verifies many keys of a network, and returns the reasons why that failed. */
  const flood = (network: string, size: number) =>
    Array.from({ length: size }, () =>
      verify(network).then(
        () => 'found',
        ({ reason }: { reason: string }) => reason,
      ),
    );
  return { apps, release, flood, verifyOwn: (network: string) => verify(network, socketKey), applicationId };
}

it('leaves room for other networks, whatever one asks', async () => {
  const { apps, release, verifyOwn, flood, applicationId } = start();
  const flooded = flood('flooding', 1_000);
  await eventually(() => expect(apps.calls.lookUp).toBe(CALLS.concurrencyPerKey));
  apps.waitFor(undefined);
  expect(await verifyOwn('other')).toMatchObject({ holder: { applicationId } });
  release();
  expect(new Set(await Promise.all(flooded))).toEqual(new Set(['found']));
});

it('makes no calls for clients that waited too long', async () => {
  const { apps, flood } = start(performance.now());
  expect(new Set(await Promise.all(flood('gone', 20)))).toEqual(new Set(['dependency_unavailable']));
  expect(apps.calls.lookUp).toBe(0);
});

it('makes one call for concurrent clients with one key', async () => {
  const { apps, release, verifyOwn } = start();
  const first = verifyOwn('a');
  await eventually(() => expect(apps.calls.lookUp).toBe(1));
  const others = Array.from({ length: 100 }, (_, i) => verifyOwn(`network ${i}`));
  release();
  await Promise.all([first, ...others]);
  expect(apps.calls.lookUp).toBe(2);
});
