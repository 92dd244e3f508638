import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import sharp from 'sharp';
import { expect, inject, it, onTestFinished } from 'vitest';
import { unique } from '../client/caller.ts';

const { baseUrl } = inject('latchkeyInstance');

/** Values of a response that later commands of the guide use as shell variables. */
const VARIABLES = {
  CSRF: /"csrfToken":"(.*?)"/,
  KEY: /"plaintextKey":"(.*?)"/,
  KEY_ID: /"data":{"id":"(.*?)","name":"laptop"/,
  APP: /"data":\[{"id":"(.*?)","name":"Diff/,
  FILE: /"data":{"id":"(.*?)","byteSize"/,
  URL: /"data":{"url":"(.*?)"/,
};

/** A matcher for a documented response: `…` is any text, and objects may have more properties. */
function toMatcher(value: unknown): unknown {
  if (typeof value === 'string' && value.includes('…')) return expect.stringContaining(value.split('…')[0] as string);
  if (Array.isArray(value)) {
    return value.includes('…') ? expect.arrayContaining(value.filter((item) => item !== '…')) : value.map(toMatcher);
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, toMatcher(item)]);
  return expect.objectContaining(Object.fromEntries(entries));
}

it('every command of the REST guide gets the response that follows it', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-guide-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } }).toFile(join(folder, 'me.png'));
  const name = unique('ada-');
  const adapt = (block: string) => block.replaceAll('"ada"', `"${name}"`).replaceAll('ada@example.com', `${name}@example.com`);
  const guide = await readFile(join(import.meta.dirname, '../../../../docs/rest.md'), 'utf8');
  const blocks = [...guide.matchAll(/^```(\w*)\n(.*?)^```/gms)].map(([, kind, block]) => ({
    kind,
    block: adapt(block as string),
  }));
  const env: Record<string, string> = { PATH: process.env.PATH ?? '', BASE: baseUrl };

  let printed = '';
  for (const { kind, block } of blocks.slice(1)) {
    if (kind === 'sh') {
      const shell = spawn('sh', ['-ec', block], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
      [printed] = await Promise.all([text(shell.stdout), once(shell, 'close')]);
      for (const [variable, pattern] of Object.entries(VARIABLES)) {
        env[variable] = pattern.exec(printed)?.[1] ?? env[variable] ?? '';
      }
    } else if (kind === 'json') {
      expect(JSON.parse(printed), printed).toEqual(toMatcher(JSON.parse(block)));
    } else {
      for (const line of block.trim().split('\n')) expect(printed).toContain(line.split('…')[0]);
    }
  }
});
