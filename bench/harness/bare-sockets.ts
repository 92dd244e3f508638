import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

/**
 * The least that can send a message to many sockets: a bare `ws` loop. The message is the body of
 * a POST.
 */
const http = createServer(async (req, res) => {
  const buffer = Buffer.concat(await req.toArray());
  if (req.method === 'POST') for (const socket of server.clients) socket.send(buffer, { binary: false });
  res.end();
});
const server = new WebSocketServer({ server: http, perMessageDeflate: false });

http.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit(0));
