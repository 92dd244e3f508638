import { expect, it } from 'vitest';
import { defaultHost } from './listen-host.ts';

it.each([
  [undefined, '127.0.0.1'],
  ['http://localhost:8080', '127.0.0.1'],
  ['https://LOCALHOST/', '127.0.0.1'],
  ['http://127.0.0.1:8080', '127.0.0.1'],
  ['http://127.1', '127.0.0.1'],
  ['http://127.0.0.2', '127.0.0.2'],
  ['http://[::1]:8080', '::1'],
  ['http://localhost.example', '0.0.0.0'],
  ['http://127.example', '0.0.0.0'],
  ['https://panel.example', '0.0.0.0'],
  ['http://192.168.0.2:8080', '0.0.0.0'],
  ['wss://[2001:db8::1]/', '0.0.0.0'],
])('a service with the public URL %s listens on %s', (publicUrl, host) => {
  expect(defaultHost(publicUrl)).toBe(host);
});
