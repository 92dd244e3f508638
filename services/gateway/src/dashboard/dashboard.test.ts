import { request } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { startTestGateway } from '../testing/test-gateway.ts';

/** With any `Host`, which fetch does not let one choose. */
async function get(port: number, path: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number | undefined; headers: NodeJS.Dict<string | string[]>; body: string }>((resolve, reject) => {
    const req = request({ port, path, method, headers }, async (res) => {
      let body = '';
      for await (const chunk of res) body += chunk;
      resolve({ status: res.statusCode, headers: res.headers, body });
    });
    req.once('error', reject).end();
  });
}

async function start(env: Record<string, string> = {}): Promise<number> {
  const { service, port } = await startTestGateway({ env });
  onTestFinished(() => service.stop());
  return port;
}

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

it('serves the page at / and, to browsers, at every path that may be a page', async () => {
  const port = await start();
  const page = await get(port, '/');
  expect([page.status, page.headers['cache-control'], page.headers['content-type']]).toEqual([
    200,
    'no-store',
    'text/html; charset=utf-8',
  ]);
  expect((await get(port, '/applications/some-id?search=a.b', BROWSER)).body).toBe(page.body);
  const asset = /src="(\/assets\/[^"]+[.]js)"/.exec(page.body)?.[1] ?? '';
  const script = await get(port, asset, { 'accept-encoding': 'br' });
  expect([script.status, script.headers['cache-control'], script.headers['content-encoding']]).toEqual([
    200,
    'public, max-age=31536000, immutable',
    'br',
  ]);
});

it.each([
  ['/applications', {}, 'GET', 404],
  ['/api/v1/panel/unknown', BROWSER, 'GET', 404],
  ['/api/v1/panel/create-application', BROWSER, 'GET', 405],
  ['/assets/gone.js', BROWSER, 'GET', 404],
  ['/file.txt', BROWSER, 'GET', 404],
  ['/applications', BROWSER, 'POST', 404],
  ['/', BROWSER, 'POST', 405],
])('rejects %s with the envelope', async (path, headers, method, status) => {
  const answer = await get(await start(), path, headers, method);
  expect([answer.status, JSON.parse(answer.body).success]).toEqual([status, false]);
});

it.each([
  ['its own port', {}, 'localhost:8080', 'ws://localhost:8081/api/v1/realtime'],
  ['another host, at the same port', { REALTIME_PORT: '9001' }, '192.0.2.7:8080', 'ws://192.0.2.7:9001/api/v1/realtime'],
  ['a proxy on the default port', {}, 'panel.example.com', 'ws://panel.example.com/api/v1/realtime'],
  ['the setting', { PUBLIC_REALTIME_URL: 'wss://live.example.com/x' }, 'localhost:8080', 'wss://live.example.com/x'],
])('allows live events at %s, and nothing else of another origin', async (_case, env, host, url) => {
  const { headers, body } = await get(await start(env), '/', { host });
  expect(body).toContain(`<meta name="latchkey-realtime" content="${url}">`);
  expect(headers['content-security-policy']).toBe(
    [
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;",
      `connect-src 'self'${url && ` ${new URL(url).origin}`}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
    ].join(' '),
  );
});

it('has the first page load at most 75 kB of scripts and styles, in 10 files', async () => {
  const port = await start();
  const { body } = await get(port, '/');
  const paths = [...body.matchAll(/(?:src|href)="(\/assets\/[^"]+[.](?:js|css))"/g)].map(([, path = '']) => path);
  const files = await Promise.all(paths.map((path) => get(port, path, { 'accept-encoding': 'br' }, 'HEAD')));
  const bytes = files.reduce((sum, { headers }) => sum + Number(headers['content-length']), 0);
  expect(paths.length).toBeLessThanOrEqual(10);
  expect(bytes).toBeGreaterThan(30_000);
  expect(bytes).toBeLessThan(75_000);
});

it('has no inline script or style', async () => {
  const { body } = await get(await start(), '/');
  expect(body).not.toMatch(/<style|style=|<script(?![^>]* src=)|javascript:| on\w+=/i);
});

it('finds its files below the path of PUBLIC_URL, and says whether the browser has a session', async () => {
  const port = await start({ PUBLIC_URL: 'https://example.com/panel/' });
  const { body } = await get(port, '/', { cookie: 'session=token' });
  expect(body).toMatch(/src="\/panel\/assets\/[^"]+[.]js"[\s\S]+<a href="\/panel\/docs">/);
  expect(body).toMatch(/name="latchkey-base" content="\/panel\/"[\s\S]+name="latchkey-session" content="yes"/);
});

it.each([
  ['/', ['api/v1/auth/session', 'api/v1/panel/list-applications?page=1&amp;sort=name']],
  ['/panel/applications', ['api/v1/auth/session', 'api/v1/panel/list-applications?page=1&amp;sort=name']],
  ['/applications?search=a', ['api/v1/auth/session']],
  ['/account', ['api/v1/auth/session']],
])('has the browser of a session begin with the reads of %s, and no other', async (path, reads) => {
  const port = await start({ PUBLIC_URL: 'https://example.com/panel/' });
  const linksOf = (body: string) => [...body.matchAll(/<link rel="preload" as="fetch" crossorigin href="([^"]+)">/g)];
  const { body } = await get(port, path, { ...BROWSER, cookie: 'session=token' });
  expect(linksOf(body).map(([, href]) => href)).toEqual(reads.map((read) => `/panel/${read}`));
  expect(linksOf((await get(port, path, BROWSER)).body)).toEqual([]);
});

it('answers 404 with DASHBOARD=off', async () => {
  const port = await start({ DASHBOARD: 'off' });
  expect([(await get(port, '/')).status, (await get(port, '/applications', BROWSER)).status]).toEqual([404, 404]);
});
