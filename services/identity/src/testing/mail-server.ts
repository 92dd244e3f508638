import { eventually } from '@latchkey/testkit/eventually';
import { createAuthority } from '@latchkey/testkit/network/certificates';
import { SMTPServer } from 'smtp-server';

export interface ReceivedMail {
  readonly to: string;
  /** Header and text as they were sent. */
  readonly raw: string;
  /** The link in it, and the link's token. */
  readonly link: string;
  readonly token: string;
}

export type TestMailServer = Awaited<ReturnType<typeof startMailServer>>;

export const MAIL_USER = { user: 'latchkey', pass: 'the-password-of-the-mail-server' };

/**
 * A mail server on loopback that asks for {@link MAIL_USER}, with a certificate of an unknown
 * authority. It rejects recipients that start with `rejected`.
 */
export async function startMailServer(onMail?: (mail: ReceivedMail) => void) {
  const mails: ReceivedMail[] = [];
  const control = {
    /** Answers to recipients from now on, in their order, in place of acceptance. */
    failures: [] as number[],
    attempts: 0,
    offersTls: true,
  };
  const server = new SMTPServer({
    ...(await (await createAuthority('Unknown authority')).issue()),
    allowInsecureAuth: true,
    onConnect(session, done) {
      session.disabledCommands = control.offersTls ? [] : ['STARTTLS'];
      done();
    },
    onAuth({ username, password }, _session, done) {
      const isKnown = username === MAIL_USER.user && password === MAIL_USER.pass;
      done(isKnown ? null : new Error('Wrong password'), isKnown ? { user: username } : undefined);
    },
    onRcptTo({ address }, _session, done) {
      control.attempts += 1;
      const responseCode = address.startsWith('rejected') ? 550 : control.failures.shift();
      done(responseCode === undefined ? null : Object.assign(new Error(`No mail to ${address}`), { responseCode }));
    },
    onData(stream, { envelope: { rcptTo } }, done) {
      let raw = '';
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        raw += chunk;
      });
      stream.on('end', () => {
        const [link = '', token = ''] = /^http.*#token=(.*?)$/m.exec(raw.replaceAll('\r', '')) ?? [];
        for (const { address } of rcptTo) {
          const mail = { to: address, raw, link, token };
          mails.push(mail);
          onMail?.(mail);
        }
        done();
      });
    },
  });
  const { port } = await new Promise<{ port: number }>((resolve) => {
    const listening = server.listen(0, '127.0.0.1', () => resolve(listening.address() as { port: number }));
  });
  const mailsTo = (address: string) => mails.filter(({ to }) => to === address);
  return {
    control,
    mailsTo,
    env: {
      SMTP_URL: `smtp://${MAIL_USER.user}:${MAIL_USER.pass}@127.0.0.1:${port}`,
      MAIL_FROM: 'Latchkey <latchkey@example.test>',
    },
    /** The `count` mails that an address got, once it has that many. */
    waitForMails: (address: string, count = 1) =>
      eventually(() => mailsTo(address).length >= count && mailsTo(address), { timeoutMs: 10_000 }) as Promise<ReceivedMail[]>,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
