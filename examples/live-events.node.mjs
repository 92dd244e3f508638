// Prints the live events of an application: npm install @latchkey/client ws
import { Latchkey } from '@latchkey/client';
import { WebSocket } from 'ws';

const { LATCHKEY_URL: url = 'http://localhost:8080', LATCHKEY_SOCKET_KEY: socketKey = '' } = process.env;
const latchkey = new Latchkey({ url });
for await (const { type, data } of latchkey.events({ socketKey, WebSocket })) {
  // A terminal would interpret control characters.
  process.stdout.write(`${type} ${JSON.stringify(data)}`.replace(/[\p{Cc}\p{Bidi_Control}]/gu, '?').concat('\n'));
}
