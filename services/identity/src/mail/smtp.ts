import { isLoopback } from '@latchkey/kit/config/listen-host';

/** Sends a mail. False when the server rejects the recipient for good. */
export type SendMail = (mail: Readonly<Record<'id' | 'to' | 'subject' | 'text', string>>) => Promise<boolean>;

const CONNECT_MS_MAX = 10_000;
const SEND_MS_MAX = 30_000;

/**
 * Sends mails through the server of SMTP_URL. Passwords are sent over TLS alone, unless the URL
 * says `requireTLS=false`. On loopback no connection is encrypted: certificates are seldom valid.
 */
export function createSmtp(smtpUrl: string, from: string): SendMail {
  const domain = /@([^@>]+)>?$/.exec(from)?.[1];
  let transport: ReturnType<typeof openTransport> | undefined;
  return async ({ id, to, subject, text }) => {
    const signal = AbortSignal.timeout(SEND_MS_MAX);
    // A mail that is sent again has the same id, by which mailboxes detect duplicates.
    const more = { messageId: `<${id}@${domain}>`, headers: { 'Auto-Submitted': 'auto-generated' } };
    transport ??= openTransport(smtpUrl);
    try {
      await (await transport).sendMail({ from, to: { name: '', address: to }, subject, text, ...more, signal });
      return true;
    } catch (err) {
      const { code = 'unknown', command, responseCode, permanent } = err as SmtpError;
      if (permanent && command === 'RCPT TO') return false;
      // Responses of servers may repeat addresses and parts of the mail.
      throw new Error(`The mail server failed: ${[code, command, responseCode].filter(Boolean).join(' ')}`);
    }
  };
}

async function openTransport(smtpUrl: string) {
  const { hostname, username, searchParams } = new URL(smtpUrl);
  const isLocal = isLoopback(hostname);
  // Loaded for the first mail, as it takes memory.
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url: smtpUrl,
    connectionTimeout: CONNECT_MS_MAX,
    greetingTimeout: CONNECT_MS_MAX,
    socketTimeout: CONNECT_MS_MAX,
    // These options take precedence over those of the URL.
    logger: false,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(isLocal && { ignoreTLS: true }),
    ...(!isLocal && username !== '' && !searchParams.has('requireTLS') && { requireTLS: true }),
  });
}

interface SmtpError {
  readonly code?: string;
  readonly command?: string;
  readonly responseCode?: number;
  readonly permanent?: boolean;
}
