import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';

/** A command for the process that holds connections. */
export type Command =
  | { readonly do: 'open'; readonly port: number; readonly requests: readonly string[]; readonly count: number }
  | { readonly do: 'expect'; readonly count: number }
  | { readonly do: 'cut' };

/** Its response. */
export interface Answer {
  /** Time by {@link now}. */
  readonly at: number;
  /** CPU time of the process so far. */
  readonly cpuSeconds: number;
  /** Connections that were refused since the last were opened, and tried again. */
  readonly retries: number;
  /** The text of a message, where one was expected. */
  readonly sample?: string | undefined;
}

const PROGRAM = fileURLToPath(new URL('./live-clients-main.ts', import.meta.url));
const ANSWER_TIMEOUT_MS = 120_000;

/** Milliseconds of a clock that all processes of a machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Live connections in another process, which ends when this is disposed of. */
export class LiveClients {
  readonly #child: ChildProcess = fork(PROGRAM);
  readonly #waiting = new Map<string, (answer: Answer) => void>();
  #lastId = 0;

  constructor() {
    this.#child.on('message', ({ key, ...answer }: Answer & { key: string }) => this.#waiting.get(key)?.(answer));
  }

  /** Opens connections, with the requests in turns; does not wait for them. */
  async open(port: number, requests: readonly string[], count: number): Promise<Answer> {
    return this.#send({ do: 'open', port, requests, count }).begun;
  }

  /** Opens connections and waits for one message to each. */
  async openAll(port: number, requests: readonly string[], count: number): Promise<void> {
    const { reached } = await this.expect(count);
    await this.open(port, requests, count);
    await reached;
  }

  /** Begins to count messages; `reached` resolves with this number of them. */
  async expect(count: number): Promise<{ readonly begun: Answer; readonly reached: Promise<Answer> }> {
    const { begun, end } = this.#send({ do: 'expect', count });
    const reached = end();
    return { begun: await begun, reached };
  }

  cut(): Promise<Answer> {
    return this.#send({ do: 'cut' }).begun;
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }

  #send(command: Command) {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#child.send({ id, ...command });
    return { begun: this.#wait(`${id} begun`), end: () => this.#wait(`${id} ended`) };
  }

  #wait(key: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`No answer: ${key}`)), ANSWER_TIMEOUT_MS);
      this.#waiting.set(key, (answer) => {
        clearTimeout(timer);
        this.#waiting.delete(key);
        resolve(answer);
      });
    });
  }
}

/** The upgrade request of a client. */
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
