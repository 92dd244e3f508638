import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import type { Logger } from '@latchkey/kit/log/logger';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { readSessionClient } from '../authentication/credential.ts';
import type { GatewayConfig } from '../config.ts';

/** Output of `packages/dashboard/scripts/build.mjs`. */
const BUILT_DIR = join(import.meta.dirname, '../../../../packages/dashboard/dist/');

const OTHER_PATHS = /^\/(api|docs|assets|metrics)(\/|$)/;

const ASSETS_AGE = '365d';

type PageHandler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

export function createDashboard(config: GatewayConfig, logger: Logger) {
  if (config.DASHBOARD === 'off') return undefined;
  if (!existsSync(`${BUILT_DIR}index.html`)) {
    logger.warn('the dashboard is not built: run node packages/dashboard/scripts/build.mjs, or set DASHBOARD=off');
    return undefined;
  }
  const sendPage = createPage(config);
  return { isPageRequest, sendPage, register: (app: FastifyInstance) => registerFiles(app, sendPage) };
}

async function registerFiles(app: FastifyInstance, sendPage: PageHandler): Promise<void> {
  app.get('/', { schema: { hide: true } as object }, sendPage);
  await app.register(fastifyStatic, {
    root: `${BUILT_DIR}assets`,
    prefix: '/assets/',
    decorateReply: false,
    // A route for each file: other paths keep their responses.
    wildcard: false,
    index: false,
    preCompressed: true,
    // Their names contain a hash of their content.
    immutable: true,
    maxAge: ASSETS_AGE,
  });
}

/** True if an unrouted request is a browser's for a page, which the dashboard finds itself. */
function isPageRequest({ method, url, headers }: FastifyRequest): boolean {
  if ((method !== 'GET' && method !== 'HEAD') || !headers.accept?.includes('text/html')) return false;
  const [path = ''] = url.split(/[?#]/, 1);
  return path.startsWith('/') && !OTHER_PATHS.test(path) && !path.slice(path.lastIndexOf('/')).includes('.');
}

/** The page with what it has to know of this deployment and this request. */
function createPage(config: GatewayConfig): PageHandler {
  const base = config.PUBLIC_URL === undefined ? '/' : `${new URL(config.PUBLIC_URL).pathname.replace(/\/+$/, '')}/`;
  const page = readFileSync(`${BUILT_DIR}index.html`, 'utf8').replaceAll('"./', () => `"${base}`);
  return (request, reply) => {
    const realtime = realtimeUrlFor(request, config);
    const hasSession = readSessionClient(request.raw).previousSessionToken !== '';
    const facts = { base, realtime: realtime?.href ?? '', session: hasSession ? 'yes' : 'no' };
    const reads = hasSession ? firstReadsOf(request.url) : [];
    const links = reads.map((path) => `<link rel="preload" as="fetch" crossorigin href="${base}${path}">`);
    return reply
      .headers({
        'content-security-policy': contentSecurityPolicy(realtime),
        // The back/forward cache would show it after the sign-out.
        'cache-control': 'no-store',
        vary: 'Accept, Cookie',
      })
      .type('text/html; charset=utf-8')
      .send(
        page
          .replace(
            /(name="latchkey-(base|realtime|session)" content=")[^"]*/g,
            (_all, start, name) => start + facts[name as keyof typeof facts],
          )
          .replace('</head>', `${links.join('')}</head>`),
      );
  };
}

/**
 * Reads that the dashboard begins with on a page. The browser sends them while it loads the script,
 * which takes seconds on a slow network.
 */
function firstReadsOf(url: string): readonly string[] {
  const session = 'api/v1/auth/session';
  const isList = /^[^?]*\/(applications)?$/.test(url);
  return isList ? [session, 'api/v1/panel/list-applications?page=1&amp;sort=name'] : [session];
}

/** Name or address, with a port or without. */
const HOST = /^[A-Za-z0-9._[\]:-]+$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * URL of live events for a browser that called us: `PUBLIC_REALTIME_URL`, else the host that
 * it called. There they have another port, unless a proxy serves both on a default port.
 * Undefined for a request without a valid host.
 */
function realtimeUrlFor({ protocol, host }: FastifyRequest, config: GatewayConfig): URL | undefined {
  if (config.PUBLIC_REALTIME_URL !== undefined) return new URL(config.PUBLIC_REALTIME_URL);
  const page = HOST.test(host) ? URL.parse(`${protocol}://${host}`) : null;
  if (!page) return undefined;
  const isDirect = page.port !== '' || DEFAULT_PORTS[protocol] === String(config.PORT);
  const port = isDirect ? `:${config.REALTIME_PORT}` : '';
  return new URL(`${protocol === 'https' ? 'wss' : 'ws'}://${page.hostname}${port}${REALTIME_PATH}`);
}

/** Further security headers are the `standardHeaders` of kit. */
function contentSecurityPolicy(realtime: URL | undefined): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    `connect-src 'self'${realtime ? ` ${realtime.origin}` : ''}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}
