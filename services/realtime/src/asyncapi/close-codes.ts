import { CLIENT_FRAME_BYTES_MAX } from '../protocol.ts';
import { CLOSE } from '../socket/close-code.ts';
import { FRAMES_MAX, WINDOW_MS } from '../socket/frame-meter.ts';

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
  sendsTooMuch: {
    meaning: `The client sent more than ${FRAMES_MAX} frames in ${WINDOW_MS / 1_000} s, pings and pongs counted.`,
    clientShould: `Send nothing. ${RECONNECT}`,
  },
  readsTooSlowly: {
    meaning: 'The client did not read for 10 s while more than 256 KiB waited in the service, beside what the network holds.',
    clientShould: `Read sooner. ${RECONNECT}`,
  },
};

/** That of `createWebSocketServer`, which reads this document and so can't be read here. */
const FRAGMENTS_MAX = 100;

/** What the WebSocket library closes for (RFC 6455), beside what {@link CLOSE} has. */
const BY_LIBRARY: readonly CloseCode[] = [
  {
    code: 1002,
    meaning: 'What the client sent breaks the WebSocket protocol.',
    clientShould: `Mend the client, or what is in between. ${RECONNECT}`,
  },
  { code: 1007, meaning: 'The client sent text that is no UTF-8.', clientShould: `Send nothing. ${RECONNECT}` },
  {
    code: 1008,
    meaning: `The client sent a message in more than ${FRAGMENTS_MAX} frames.`,
    clientShould: `Send nothing. ${RECONNECT}`,
  },
  {
    code: 1009,
    meaning: `The client sent a frame or message over ${CLIENT_FRAME_BYTES_MAX} bytes.`,
    clientShould: `Send nothing. ${RECONNECT}`,
  },
];

/** Every code that a client may be closed with, in order. */
export const CLOSE_CODES: readonly CloseCode[] = [
  ...(Object.keys(CLOSE) as Array<keyof typeof CLOSE>).map((name) => ({ code: CLOSE[name].code, ...described[name] })),
  ...BY_LIBRARY,
].sort((a, b) => a.code - b.code);
