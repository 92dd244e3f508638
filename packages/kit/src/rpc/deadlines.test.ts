import { expect, it } from 'vitest';
import { DEADLINES_MS } from './deadlines.ts';

type Name = keyof typeof DEADLINES_MS;

it.each<readonly [callee: Name[], caller: Name]>([
  [['databaseStatement'], 'databaseQuery'],
  [['databaseConnect', 'databaseQuery'], 'gateway'],
  [['databaseQuery'], 'apps'],
  [['databaseQuery'], 'setAvatar'],
  [['passwords'], 'gateway'],
  [['passwordsWithoutRedis'], 'passwords'],
  [['connect'], 'setAvatar'],
  [['apps'], 'queue'],
  [['queue'], 'gateway'],
  [['listDeletions'], 'apps'],
  [['issuer'], 'issuerStep'],
  [['issuer', 'issuerStep'], 'gatewayIssuer'],
  [['gatewayIssuer'], 'longest'],
  [['inspectionQueue'], 'gatewayInspection'],
  [['gatewayInspection'], 'longest'],
  [['deleteApplications'], 'longest'],
])('%j ends before its caller, %s', (callees, caller) => {
  const spentMs = callees.reduce((sum, callee) => sum + DEADLINES_MS[callee], 0);
  expect(spentMs).toBeLessThan(DEADLINES_MS[caller]);
});
