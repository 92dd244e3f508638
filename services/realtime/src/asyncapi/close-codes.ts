/** Why the service closes a connection, and what the client does then. */
export interface CloseCode {
  readonly code: number;
  readonly meaning: string;
  readonly clientShould: string;
}

const RECONNECT = 'Connect again after a random delay, with `Last-Event-ID`.';

/** Every code with which the service closes (decisions 10). */
export const CLOSE_CODES = {
  stopping: { code: 1001, meaning: 'The node is stopping; others are there, or it comes back.', clientShould: RECONNECT },
  frameTooLarge: {
    code: 1009,
    meaning: 'A frame or message of the client was over 4 KiB.',
    clientShould: 'Send nothing; nothing that a client sends is read.',
  },
  applicationDeleted: {
    code: 4102,
    meaning: 'The application was deleted; its event came before.',
    clientShould: 'Stop. The key is refused from now on.',
  },
  keyRotated: {
    code: 4103,
    meaning: 'The socket key was rotated, and this connection was opened with the old one.',
    clientShould: 'Stop, and connect with the new key.',
  },
  sendsTooMuch: {
    code: 4201,
    meaning: 'The client sent too many frames.',
    clientShould: `Send less, or nothing. ${RECONNECT}`,
  },
  readsTooSlowly: {
    code: 4202,
    meaning: 'The client did not read, and too much was waiting for it.',
    clientShould: `Read sooner. ${RECONNECT}`,
  },
} as const satisfies Record<string, CloseCode>;
