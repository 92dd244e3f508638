import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Route } from '../routing/route.ts';

/** Rejects requests without a route: 405 with `Allow` for a known path, else 404. */
export function createNotFoundHandler(routes: readonly Pick<Route, 'method' | 'url'>[]) {
  const methodsByPath = new Map<string, Set<string>>();
  for (const { method, url } of routes) {
    const methods = methodsByPath.get(url) ?? new Set();
    methodsByPath.set(url, methods.add(method));
    if (method === 'GET') methods.add('HEAD');
  }
  const patterns = [...methodsByPath].map(([url, methods]) => {
    return [new RegExp(`^${url.replace(/:[a-zA-Z]+/g, '[^/]+')}$`), [...methods].join(', ')] as const;
  });
  return (request: FastifyRequest, reply: FastifyReply): never => {
    const path = pathOf(request.url);
    const known = patterns.find(([pattern]) => pattern.test(path));
    if (!known) throw errors.route_not_found();
    reply.header('allow', known[1]);
    throw errors.method_not_allowed().withDetails({ path: 'request', message: `must use the method ${known[1]}` });
  };
}

/** The path as the router reads it: targets may be absolute (RFC 9112, 3.2.2) and escaped. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').split(/[?#]/, 1)[0] as string;
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
