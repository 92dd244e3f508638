import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Context } from '../program/context.ts';
import type { Io } from '../program/io.ts';
import { UploadProgress } from './upload-progress.ts';

it('shows no rate before the first byte', () => {
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 100 });
  const context = new Context({ env: { HOME: '/nonexistent' }, stdin: {}, stdout: {}, stderr } as unknown as Io, {});
  new UploadProgress(context, 'a.zip', 5).update(0, 1_048_576);
  const [, , drawn] = String(stderr.read()).split('\r');
  expect(drawn).toMatch(/0\.0 of 1\.0 MiB$/);
});
