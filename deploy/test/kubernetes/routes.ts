import { containersOf, find, type KubeObject, nameOf, ofKind } from './objects.ts';
import { configOf, environmentOf } from './settings.ts';

/** Time of an upload besides its deadline, in seconds: the gateway's `uploadMsMax`. */
const UPLOAD_SLACK_SECONDS = 15;

/** Annotations of an Ingress that hold times, and those that let bodies pass as they come. */
const TIMES = [
  'haproxy.org/timeout-server',
  'nginx.ingress.kubernetes.io/proxy-read-timeout',
  'nginx.ingress.kubernetes.io/proxy-send-timeout',
];
const PASSING: Readonly<Record<string, string>> = {
  'nginx.ingress.kubernetes.io/proxy-body-size': '0',
  'nginx.ingress.kubernetes.io/proxy-request-buffering': 'off',
  'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
};

/**
 * Service of each path: sockets and what describes them to realtime, everything else to
 * the gateway.
 */
const PATHS: Readonly<Record<string, string>> = { '/api/v1/realtime': 'realtime', '/asyncapi.json': 'realtime', '/': 'gateway' };

/** Faults of the ingress that break uploads, sockets, addresses of clients or cookies. */
export function routeProblems(objects: readonly KubeObject[]): string[] {
  const ways = [...ofKind(objects, 'Ingress').map(ingressWay), ...ofKind(objects, 'HTTPRoute').map(httpRouteWay)];
  const gateway = find(objects, 'Deployment', 'gateway');
  const [container] = containersOf(gateway);
  const env = environmentOf(container, objects);
  const neededSeconds = (configOf(container, objects).UPLOAD_DEADLINE_SECONDS ?? 0) + UPLOAD_SLACK_SECONDS;
  return [
    ...(ways.length === 1 ? [] : [`${ways.length} ways in`]),
    ...ways.flatMap(({ name, problems, hosts, paths, seconds }) => [
      ...problems,
      ...Object.entries(PATHS)
        .filter(([path, service]) => paths[path] !== service)
        .map(([path, service]) => `${name}: ${path} does not lead to ${service}`),
      // 0 means unlimited.
      ...seconds
        .filter((each) => each !== 0 && each <= neededSeconds)
        .map((each) => `${name}: it waits ${each} s, and an upload takes up to ${neededSeconds} s`),
      ...(hosts.includes(new URL(env.PUBLIC_URL ?? 'http://none').hostname) ? [] : [`${name}: PUBLIC_URL has another host`]),
    ]),
    ...(env.TRUSTED_PROXIES ? [] : ['Deployment gateway: TRUSTED_PROXIES is not set, so that all clients are one address']),
  ];
}

interface Way {
  readonly name: string;
  readonly problems: string[];
  readonly hosts: string[];
  readonly paths: Record<string, string>;
  readonly seconds: number[];
}

function ingressWay(ingress: KubeObject): Way {
  const { annotations = {} } = ingress.metadata;
  const { rules, tls = [], ingressClassName } = ingress.spec;
  const hosts: string[] = rules.map(({ host = '' }: KubeObject) => host);
  const problems = [
    ...(ingressClassName ? [] : [`${nameOf(ingress)}: it has no class`]),
    ...TIMES.filter((name) => !(name in annotations)).map((name) => `${nameOf(ingress)}: ${name} is not set`),
    ...Object.entries(PASSING)
      .filter(([name, value]) => annotations[name] !== value)
      .map(([name, value]) => `${nameOf(ingress)}: ${name} is not ${value}`),
    ...hosts
      .filter((host) => !tls.some((each: KubeObject) => each.hosts.includes(host)))
      .map((host) => `${nameOf(ingress)}: no certificate for ${host}`),
  ];
  const paths = rules.flatMap(({ http }: KubeObject) =>
    http.paths.map(({ path, backend }: KubeObject) => [path, backend.service.name]),
  );
  const seconds = TIMES.map((name) => Number.parseInt(annotations[name] ?? '0', 10));
  return { name: nameOf(ingress), problems, hosts, paths: Object.fromEntries(paths), seconds };
}

function httpRouteWay(route: KubeObject): Way {
  const { rules, hostnames } = route.spec;
  const paths = rules.flatMap(({ matches, backendRefs }: KubeObject) =>
    matches.map(({ path }: KubeObject) => [path.value, backendRefs[0].name]),
  );
  const seconds = rules.map(({ timeouts }: KubeObject) => Number.parseInt(timeouts?.request ?? '15', 10));
  return { name: nameOf(route), problems: [], hosts: hostnames, paths: Object.fromEntries(paths), seconds };
}
