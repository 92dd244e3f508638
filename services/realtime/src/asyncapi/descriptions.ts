import { CLIENT_FRAME_BYTES_MAX, CLOUDEVENTS_PROTOCOL, REALTIME_PATH } from '../protocol.ts';
import { FRAMES_MAX, WINDOW_MS } from '../socket/frame-meter.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { REFUSALS } from './refusals.ts';

/** What the document says of the whole. */
export const INFO_DESCRIPTION = `Clients of an application hear of a pause, a resume, a new version and the deletion, once it is committed.

A connection belongs to one application: the one whose socket key opened it. Frames are CloudEvents 1.0 in JSON, one to a text frame, as in the
CloudEvents WebSocket binding (sub-protocol \`${CLOUDEVENTS_PROTOCOL}\`). This document is written from the side of the service: what it \`send\`s, clients receive.
Ignore properties and types that you do not know: more may come.`;

/** What the document says of the endpoint. */
export const CHANNEL_DESCRIPTION = `\`GET ${REALTIME_PATH}\`, upgraded to a WebSocket.

**Order.** \`ready\` comes first. Events follow in order of \`sequence\`, which grows by one per application, and each at least once: drop one whose
\`sequence\` is not above the last that you have seen.

**Resuming.** Connect with \`Last-Event-ID: <sequence>\`, or \`?lastEventId=<sequence>\`, to get what you missed, of the last 24 hours or 1,000 events (settings of the
service; what is beyond goes within some five minutes). What is no \`sequence\`, is beyond the newest event or stands there twice counts as none: \`resumed: false\`. \`ready\` says \`resumed: true\` when all of it follows, or else \`resumed: false\`: then its snapshot stands in for whatever came up to \`lastSequence\`.

**What a client sends.** Nothing is needed but the pongs that every WebSocket library sends by itself. Text is ignored. A frame or message over
${CLIENT_FRAME_BYTES_MAX} bytes, a binary one, and more than ${FRAMES_MAX} frames in ${WINDOW_MS / 1_000} s, pings and pongs counted, close the connection.

**Heartbeat.** The service pings every 30 s (a setting), and drops a client that leaves two pings unanswered.

**Close codes**

${table(
  ['code', 'meaning', 'the client should'],
  CLOSE_CODES.map(({ code, meaning, clientShould }) => [String(code), meaning, clientShould]),
)}

**Refusals**, before the upgrade, with the error envelope \`{success: false, code, message, details?}\`

${table(
  ['status', 'code', 'meaning', 'the client should'],
  REFUSALS.map(({ status, code, meaning, clientShould }) => [String(status), `\`${code}\``, meaning, clientShould]),
)}`;

function table(header: readonly string[], rows: readonly string[][]): string {
  return [header, header.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
