import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';

export type Command =
  | { readonly do: 'open'; readonly port: number; readonly request: string; readonly count: number }
  | { readonly do: 'expect'; readonly count: number };

interface Reply {
  readonly at: number;
  readonly sample?: string;
}

const PROGRAM = fileURLToPath(new URL('./live-clients-main.ts', import.meta.url));
const REPLY_TIMEOUT_MS = 120_000;

/** Milliseconds of a clock that all processes of a machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Live connections in another process, which ends when this is disposed of. */
export class LiveClients {
  readonly #child: ChildProcess = fork(PROGRAM);
  readonly #waiting = new Map<string, (reply: Reply) => void>();
  #lastId = 0;

  constructor() {
    this.#child.on('message', ({ key, ...reply }: Reply & { key: string }) => this.#waiting.get(key)?.(reply));
  }

  async open(port: number, request: string, count: number): Promise<void> {
    await this.#send({ do: 'open', port, request, count }).begun;
  }

  async openAll(port: number, request: string, count: number): Promise<void> {
    const { reached } = await this.expect(count);
    await this.open(port, request, count);
    await reached;
  }

  /** Starts to count messages; `reached` resolves with this number of them. */
  async expect(count: number): Promise<{ readonly reached: Promise<Reply> }> {
    const { id, begun } = this.#send({ do: 'expect', count });
    const reached = this.#wait(`${id} ended`);
    await begun;
    return { reached };
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }

  #send(command: Command) {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#child.send({ id, ...command });
    return { id, begun: this.#wait(`${id} begun`) };
  }

  #wait(key: string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`No reply: ${key}`)), REPLY_TIMEOUT_MS);
      this.#waiting.set(key, (reply) => {
        clearTimeout(timer);
        this.#waiting.delete(key);
        resolve(reply);
      });
    });
  }
}

export function upgradeRequest(path: string, headers: Record<string, string> = {}): string {
  const all = {
    Host: '127.0.0.1',
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}
