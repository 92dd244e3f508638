import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, it, onTestFinished } from 'vitest';
import { signUp } from '../testing/caller.ts';
import { codeAt } from '../testing/two-factor.ts';

const { baseUrl } = inject('latchkeyInstance');

/** The paragraphs of commands under a heading of the document. */
async function readParagraphs(heading: string): Promise<string[]> {
  const text = await readFile(new URL('../../../../docs/accounts.md', import.meta.url), 'utf8');
  const [, block = ''] = new RegExp(`## ${heading}\n[\\s\\S]*?\`\`\`sh\n([\\s\\S]*?)\`\`\``).exec(text) ?? [];
  // What only shows something in a terminal may not be there.
  return block.split('\n\n').map((paragraph) => paragraph.replace(/^(BASE=|qrencode).*$/gm, ''));
}

it('the commands for sessions and the second factor do what the document says, one after the other', async () => {
  const { email, password } = await signUp();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-accounts-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'password.txt'), `${password}\n`);

  let csrf = '';
  const run = async (paragraph: string, code = '') => {
    const script = paragraph
      .replaceAll('ada@example.com', email)
      .replaceAll('analytical engine', password)
      .replaceAll('123456', code);
    const env = { PATH: process.env.PATH, BASE: baseUrl, CSRF: csrf };
    const { stdout } = await promisify(execFile)('sh', ['-c', `${script}\nprintf '\\n%s' "$CSRF"`], { cwd: folder, env });
    const [answer = '', token = ''] = stdout.split(/\n(?=[^\n]*$)/);
    csrf = token;
    return JSON.parse(answer);
  };

  const [, signIn = '', makeKey = '', signOut = ''] = await readParagraphs('Signing in from a script');
  const [setUp = '', enable = '', signInWithCode = '', disable = ''] = await readParagraphs('Two-factor authentication');
  expect(await run(signIn)).toMatchObject({ success: true });
  expect(await run(makeKey)).toMatchObject({ success: true });
  const { data } = await run(setUp);
  const enabled = await run(enable, codeAt(data.secret, Date.now()));
  // A code of the app is taken once, and the next one is not there yet.
  const [first, second] = enabled.data.recoveryCodes;
  expect(await run(signInWithCode, first)).toMatchObject({ success: true });
  expect(await run(disable, second)).toMatchObject({ success: true, message: 'Two-factor authentication disabled.' });
  expect(await run(signOut)).toMatchObject({ success: true });
});
