import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';

/** What the process that holds connections is told. */
export type Command =
  | { readonly do: 'open'; readonly port: number; readonly requests: readonly string[]; readonly count: number }
  | { readonly do: 'expect'; readonly count: number }
  | { readonly do: 'cut' }
  | { readonly do: 'look' };

/** What it answers. */
export interface Answer {
  /** When, as `now()` counts. */
  readonly at: number;
  readonly cpuSeconds?: number;
  /** Connections that were refused since the last were opened, and tried again. */
  readonly retries?: number;
  /** The text of a message, where one was expected. */
  readonly sample?: string | undefined;
}

const PROGRAM = fileURLToPath(new URL('./live-clients-main.ts', import.meta.url));
const EXPECT_TIMEOUT_MS = 120_000;

/** Live connections, held by a process of their own. */
export class LiveClients {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  constructor() {
    this.#child = fork(PROGRAM, { execPath: process.execPath });
    this.#child.on('message', ({ id, ...answer }: Answer & { id: number }) => this.#waiting.get(id)?.(answer));
  }

  /** Opens connections at once, with the requests in turns; does not wait for them. */
  async open(port: number, requests: readonly string[], count: number): Promise<Answer> {
    return this.#tell({ do: 'open', port, requests, count }).next();
  }

  /** Begins to count messages; the promise within resolves when so many have come. */
  async expect(count: number): Promise<{ readonly reached: Promise<Answer> }> {
    const answers = this.#tell({ do: 'expect', count });
    await answers.next();
    return { reached: answers.next() };
  }

  cut(): Promise<Answer> {
    return this.#tell({ do: 'cut' }).next();
  }

  look(): Promise<Answer> {
    return this.#tell({ do: 'look' }).next();
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }

  #tell(command: Command): { next(): Promise<Answer> } {
    this.#lastId += 1;
    const id = this.#lastId;
    const answers: Answer[] = [];
    let take: ((answer: Answer) => void) | undefined;
    this.#waiting.set(id, (answer) => {
      if (take) take(answer);
      else answers.push(answer);
      take = undefined;
    });
    this.#child.send({ id, ...command });
    const next = () =>
      new Promise<Answer>((resolve, reject) => {
        const found = answers.shift();
        if (found) return resolve(found);
        const timer = setTimeout(() => reject(new Error(`No answer to ${command.do}`)), EXPECT_TIMEOUT_MS);
        take = (answer) => {
          clearTimeout(timer);
          resolve(answer);
        };
      });
    return { next };
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
