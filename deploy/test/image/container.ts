import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ROOT } from '../compose/compose-file.ts';

const RUN = fileURLToPath(new URL('./run.sh', import.meta.url));
const USER = '10001:10001';
const LINES_MAX = 400;
/** What the Dockerfile has every program find in its environment. */
const IMAGE_ENV = Object.fromEntries(
  [...readFileSync(`${ROOT}deploy/Dockerfile`, 'utf8').matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]),
);
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A program of the image that runs as docker-compose.yml has it run. */
export class Container {
  readonly name: string;
  readonly lines: string[] = [];
  /** Its exit code. */
  readonly ended: Promise<number | null>;
  readonly #unshare: ChildProcess;

  constructor(name: string, options: { root: string; hosts: string; command: readonly string[]; env: Record<string, string> }) {
    this.name = name;
    const args = ['--mount', '--pid', '--fork', '--kill-child', RUN, options.root, options.hosts, USER, ...options.command];
    this.#unshare = spawn('unshare', args, {
      env: { PATH, ...IMAGE_ENV, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#unshare.stdout, this.#unshare.stderr]) {
      stream?.on('data', (text: Buffer) => {
        this.lines.push(...text.toString().split('\n').filter(Boolean));
        this.lines.splice(0, this.lines.length - LINES_MAX);
      });
    }
    this.ended = once(this.#unshare, 'exit').then(([code]) => code as number | null);
  }

  /** Process 1 of the container, as it is numbered outside. */
  get pid(): number {
    const { pid } = this.#unshare;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
  }

  /** Of process 1. */
  get commandLine(): string {
    return readFileSync(`/proc/${this.pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  }

  /** A field of process 1, such as `CapBnd`. */
  status(field: string): string {
    return new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))?.[1] ?? '';
  }

  /** Runs something in the container, as its user; rejects with what it said where it failed. */
  async exec(...args: string[]): Promise<string> {
    const [uid = '', gid = ''] = USER.split(':');
    const enter = ['--target', String(this.pid), '--mount', '--pid', '--root', '--wd', '--setuid', uid, '--setgid', gid];
    const { stdout } = await promisify(execFile)('nsenter', [...enter, ...args], { env: { PATH, ...IMAGE_ENV } });
    return stdout.trim();
  }

  /** Whether the health check of docker-compose.yml is content. */
  isReady(check: readonly string[]): Promise<boolean> {
    return this.exec(...check).then(
      () => true,
      () => false,
    );
  }

  /** Asks process 1 to stop, and gives its exit code and how long that took in milliseconds. */
  async stop(): Promise<{ code: number | null; ms: number }> {
    const startedAt = performance.now();
    process.kill(this.pid, 'SIGTERM');
    const code = await this.ended;
    return { code, ms: Math.round(performance.now() - startedAt) };
  }

  /** Ends it at once, where it is still there. */
  kill(): void {
    this.#unshare.kill('SIGKILL');
  }
}
