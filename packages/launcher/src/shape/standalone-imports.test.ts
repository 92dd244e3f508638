import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const SHAPE = new URL('./standalone.ts', import.meta.url).href;

/** Prints the packages that are loaded with everything that `npm start` runs in its process. */
const PROGRAM = `
  import { registerHooks } from 'node:module';
  const loaded = new Set();
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      const [, name] = /[/]node_modules[/]((?:@[^/]+[/])?[^/]+)[/](?!.*[/]node_modules[/])/.exec(found.url) ?? [];
      if (name) loaded.add(name);
      return found;
    },
  });
  await import(${JSON.stringify(SHAPE)});
  process.stdout.write(JSON.stringify([...loaded]));
  process.exit();
`;

it('npm start loads no library in its process that only deployments, metrics, traces, mails or S3 need, as each takes memory at rest', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
  const loaded = JSON.parse(stdout) as string[];
  expect(loaded).toEqual(expect.arrayContaining(['fastify', 'pg', 'bullmq', 'ws']));
  const late = /^(undici|prom-client|sharp|nodemailer|@grpc\/.*|@opentelemetry\/(?!api$).*|@aws-sdk\/.*|@smithy\/.*)$/;
  expect(loaded.filter((name) => late.test(name))).toEqual([]);
}, 30_000);
