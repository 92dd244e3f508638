import { MAIL_LINK_MINUTES } from '@latchkey/contract/limits';
import type { MailRow } from './mail.store.ts';

interface MailFacts {
  readonly username: string;
  /** Base URL of the dashboard, without a slash at the end. */
  readonly publicUrl: string;
  readonly token: string;
}

/**
 * Subject and plain text. Tokens are in the fragment of a link, which browsers send to no server.
 * Lines have at most 76 characters, so that they are sent unfolded.
 */
export function composeMail(kind: MailRow['kind'], facts: MailFacts): { readonly subject: string; readonly text: string } {
  const { subject, lines } = TEXTS[kind](facts);
  return { subject, text: [`Hello ${facts.username},`, '', ...lines, ''].join('\n') };
}

const TEXTS: Record<MailRow['kind'], (facts: MailFacts) => { readonly subject: string; readonly lines: readonly string[] }> = {
  password_reset: ({ publicUrl, token }) => ({
    subject: 'Reset your Latchkey password',
    lines: [
      'Someone asked to reset the password of your Latchkey account. Open this',
      `link within ${MAIL_LINK_MINUTES} minutes to choose another password:`,
      '',
      `${publicUrl}/reset-password#token=${token}`,
      '',
      'The link works once. If it was not you, ignore this mail: your password',
      'stays the same.',
    ],
  }),
  email_change: ({ publicUrl, token }) => ({
    subject: 'Confirm your new email address',
    lines: [
      'You asked to use this address for your Latchkey account. Open this link',
      `within ${MAIL_LINK_MINUTES} minutes, in the browser that you are signed in with:`,
      '',
      `${publicUrl}/confirm-email#token=${token}`,
      '',
      'The link works once. If it was not you, ignore this mail: nothing changes.',
    ],
  }),
  email_notice: ({ publicUrl }) => ({
    subject: 'Your Latchkey email address is about to change',
    lines: [
      'someone with your password asked to change the email address of your',
      'Latchkey account. Another mail, to the new address, confirms the change.',
      '',
      'If it was not you, change your password now. This also cancels the change:',
      '',
      publicUrl,
    ],
  }),
};
