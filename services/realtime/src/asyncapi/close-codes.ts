import { CLIENT_FRAME_BYTES_MAX } from '../protocol.ts';
import { CLOSE } from '../socket/close-code.ts';

/** Why the service closes a connection, and what the client does then. */
export interface CloseCode {
  readonly code: number;
  readonly meaning: string;
  readonly clientShould: string;
}

const RECONNECT = 'Connect again after a random delay, with `Last-Event-ID`.';

const described: Record<keyof typeof CLOSE, Omit<CloseCode, 'code'>> = {
  goingAway: {
    meaning: 'The node is stopping, or can’t give this connection its next event. Nothing is wrong with the client.',
    clientShould: RECONNECT,
  },
  binaryFrame: { meaning: 'The client sent a binary frame.', clientShould: `Send nothing. ${RECONNECT}` },
  applicationDeleted: {
    meaning: 'The application was deleted; its event came before.',
    clientShould: 'Stop: the key is refused from now on.',
  },
  keyRotated: {
    meaning: 'The socket key was rotated, and this connection was opened with an old one.',
    clientShould: 'Stop, and connect with the new key.',
  },
  sendsTooMuch: { meaning: 'The client sent too many frames.', clientShould: `Send nothing. ${RECONNECT}` },
  readsTooSlowly: {
    meaning: 'The client did not read, and too much was waiting for it.',
    clientShould: `Read sooner. ${RECONNECT}`,
  },
};

/** What the WebSocket library closes for, beside what {@link CLOSE} has. */
const FRAME_TOO_LARGE: CloseCode = {
  code: 1009,
  meaning: `The client sent a frame or message over ${CLIENT_FRAME_BYTES_MAX} bytes.`,
  clientShould: `Send nothing. ${RECONNECT}`,
};

/** Every code that a client may be closed with, in order. */
export const CLOSE_CODES: readonly CloseCode[] = [
  ...(Object.keys(CLOSE) as Array<keyof typeof CLOSE>).map((name) => ({ code: CLOSE[name].code, ...described[name] })),
  FRAME_TOO_LARGE,
].sort((a, b) => a.code - b.code);
