import { expect } from 'vitest';
import { containersOf, find, type KubeObject, ofKind } from './objects.ts';
import { configOf, environmentOf } from './settings.ts';

/** Time of an upload besides its deadline, in seconds: the gateway's `uploadMsMax`. */
const UPLOAD_SLACK_SECONDS = 15;

/** Annotations of an Ingress that hold times, and those that let bodies pass as they come. */
const TIMES = [
  'haproxy.org/timeout-server',
  'nginx.ingress.kubernetes.io/proxy-read-timeout',
  'nginx.ingress.kubernetes.io/proxy-send-timeout',
];
const PASSING = {
  'nginx.ingress.kubernetes.io/proxy-body-size': '0',
  'nginx.ingress.kubernetes.io/proxy-request-buffering': 'off',
  'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
};

/** Service of each path: sockets and what describes them to realtime, all else to the gateway. */
const PATHS = [
  ['/api/v1/realtime', 'realtime'],
  ['/asyncapi.json', 'realtime'],
  ['/', 'gateway'],
];

/** One way in, which passes uploads, sockets, addresses of clients and cookies. */
export function expectOneWayIn(objects: readonly KubeObject[]): void {
  const [container] = containersOf(find(objects, 'Deployment', 'gateway'));
  const { PUBLIC_URL = '', TRUSTED_PROXIES } = environmentOf(container, objects);
  const uploadSeconds = (configOf(container, objects).UPLOAD_DEADLINE_SECONDS ?? 0) + UPLOAD_SLACK_SECONDS;
  const host = new URL(PUBLIC_URL).hostname;
  const ingresses = ofKind(objects, 'Ingress');
  const routes = ofKind(objects, 'HTTPRoute');
  expect([ingresses.length + routes.length, TRUSTED_PROXIES]).toEqual([1, expect.stringMatching(/./)]);
  for (const { spec, metadata } of ingresses) {
    const [{ http, ...rule }] = spec.rules;
    expect([rule.host, spec.tls[0].hosts, spec.ingressClassName]).toEqual([host, [host], expect.any(String)]);
    expect(http.paths.map(({ path, backend }: KubeObject) => [path, backend.service.name])).toEqual(PATHS);
    expect(metadata.annotations).toMatchObject(PASSING);
    for (const name of TIMES) expect(Number.parseInt(metadata.annotations[name], 10)).toBeGreaterThan(uploadSeconds);
  }
  for (const { spec } of routes) {
    expect(spec.hostnames).toEqual([host]);
    const ways = spec.rules.flatMap(({ matches, backendRefs }: KubeObject) =>
      matches.map(({ path }: KubeObject) => [path.value, backendRefs[0].name]),
    );
    expect(ways).toEqual(PATHS);
    const [sockets, others] = spec.rules.map(({ timeouts }: KubeObject) => Number.parseInt(timeouts.request, 10));
    // 0 means unlimited.
    expect(sockets).toBe(0);
    expect(others).toBeGreaterThan(uploadSeconds);
  }
}
