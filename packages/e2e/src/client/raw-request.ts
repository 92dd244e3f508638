import { connect, type Socket } from 'node:net';

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  /** By lower-case name; of a repeated one, the last. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface RawOptions {
  /** Ends our side once all is sent, as a client that goes away in an orderly manner. */
  readonly end?: boolean;
  /** Responses to wait for before closing the connection, unless the server closes it. */
  readonly answers?: number;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;

/**
 * Sends bytes as they are and reads what comes back, for requests that no HTTP client would send.
 *
 * @throws when nothing more comes within the time, with what has come so far
 */
export function sendRaw(port: number, bytes: string | Buffer, options: RawOptions = {}): Promise<RawAnswer[]> {
  const { end = false, answers = 1, timeoutMs = TIMEOUT_MS } = options;
  const socket = connect(port, '127.0.0.1');
  let received = Buffer.alloc(0);
  return new Promise<RawAnswer[]>((resolve, reject) => {
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parseAnswers(received));
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`No full answer within ${timeoutMs} ms: ${received.toString('latin1')}`));
    }, timeoutMs);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (parseAnswers(received).length >= answers) finish();
    });
    socket.on('close', finish);
    // Data before a reset counts.
    socket.on('error', () => undefined);
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    if (end) socket.end();
  });
}

/** Opens a connection for a test that drives it by hand. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  return socket;
}

/** The complete responses in these bytes; all of ours have a `Content-Length`. */
function parseAnswers(received: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = received;
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) return answers;
    const [statusLine = '', ...lines] = rest.subarray(0, headEnd).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(lines.map(splitHeader));
    const status = Number(statusLine.split(' ')[1]);
    const bodyStart = headEnd + 4;
    const length = status < 200 ? 0 : Number(headers['content-length'] ?? 0);
    if (rest.length < bodyStart + length) return answers;
    const text = rest.subarray(bodyStart, bodyStart + length).toString('utf8');
    if (status >= 200) answers.push({ status, headers, text });
    rest = rest.subarray(bodyStart + length);
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}
