import { afterAll, expect, test } from 'vitest';
import { MAIL_USER, startMailServer } from '../testing/mail-server.ts';
import { createSmtp } from './smtp.ts';

const server = await startMailServer();
afterAll(server.stop);
const { SMTP_URL, MAIL_FROM } = server.env;

const send = (url: string, to = 'ada@example.test') =>
  createSmtp(url, MAIL_FROM)({ id: 'an-id', to, subject: 'A subject', text: 'A text' }).catch((err: Error) => err.message);

test('TLS needs a trusted certificate except on loopback, and a password needs TLS unless the URL says otherwise', async () => {
  expect(await send(SMTP_URL)).toBe(true);
  // Another name of this machine, which is not loopback for us.
  const elsewhere = SMTP_URL.replace('127.0.0.1', '0.0.0.0');
  const NOT_SENT = /^The mail server failed: E(SOCKET|TLS)/;
  expect(await send(`${elsewhere}?requireTLS=false`)).toMatch(NOT_SENT);
  server.control.offersTls = false;
  expect(await send(elsewhere)).toMatch(NOT_SENT);
  expect(await send(`${elsewhere}?requireTLS=false`)).toBe(true);
});

test('errors name neither the recipient nor the password', async () => {
  server.control.failures.push(451);
  expect(await send(SMTP_URL)).toBe('The mail server failed: EENVELOPE RCPT TO 451');
  expect(await send(SMTP_URL.replace(MAIL_USER.pass, 'wrong'))).toMatch(/^The mail server failed: EAUTH AUTH \w+ 535$/);
});
