import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, type Owner, readState, SCOPES, signUp, unique } from '../testing/caller.ts';
import { ACTION, CHECK_NAME, MIB, outcome, upload } from '../testing/files.ts';
import { openUpload, startUpload } from '../testing/running-upload.ts';

/** Decisions 2 for uploads. None of these requests ever sends its body: each is refused by its head alone. */
let owner: Owner;
let open: string;
let closed: string;
let restricted: Api;
let unscoped: Api;
const UNKNOWN = '01900000-0000-7000-8000-00000000dead';
const TOO_LARGE = String(150 * MIB + 1);

beforeAll(async () => {
  owner = await signUp();
  [open, closed] = [await createApplication(owner.session), await createApplication(owner.session)];
  restricted = (await createKey(owner, { applicationIds: [open] })).api;
  unscoped = (await createKey(owner, { scopes: SCOPES.filter((scope) => scope !== 'files:upload') })).api;
  await upload(owner.session, open, 'taken');
  await upload(owner.session, closed, 'taken');
});

/** Sends the head alone, and gives the answer once the connection can be let go of. */
async function sendHead(
  api: Api,
  applicationId: string,
  fileName: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const running = openUpload(api, { applicationId, fileName, headers: { 'content-length': '10', ...headers } });
  let asked = false;
  running.request.once('continue', () => {
    asked = true;
  });
  const answer: Answer = await running.answer.finally(() => running.request.destroy());
  expect(asked).toBe(false);
  return outcome(answer);
}

const json = { 'content-type': 'application/json' };
const malformed = { 'content-digest': 'sha-256=:AAAA:' };

describe('an upload is refused, without being asked for its bytes,', () => {
  it('for the scope before the kind of its body, its name or its application', async () => {
    expect(await sendHead(unscoped, UNKNOWN, '..', { ...json, ...malformed })).toBe('403 insufficient_scope');
  });

  it('for the kind of its body, its name and its digest before its application', async () => {
    expect(await sendHead(owner.session, UNKNOWN, 'fine', json)).toBe('415 VALIDATION_ERROR');
    expect(await sendHead(restricted, closed, '..')).toBe('400 VALIDATION_ERROR');
    expect(await sendHead(restricted, UNKNOWN, 'fine', malformed)).toBe('400 VALIDATION_ERROR');
  });

  it('for an application that is not there before a restricted key', async () => {
    expect(await sendHead(restricted, UNKNOWN, 'taken', { 'content-length': '0' })).toBe('404 not_found');
    expect(await sendHead(owner.session, UNKNOWN, 'fine', { 'content-length': TOO_LARGE })).toBe('404 not_found');
  });

  it('for a restricted key before anything of the file', async () => {
    expect(await sendHead(restricted, closed, 'taken')).toBe('403 application_forbidden');
    expect(await sendHead(restricted, closed, 'fine', { 'content-length': '0' })).toBe('403 application_forbidden');
    expect(await sendHead(restricted, closed, 'fine', { 'content-length': TOO_LARGE })).toBe('403 application_forbidden');
  });

  it('for a taken name before its size', async () => {
    expect(await sendHead(restricted, open, 'taken', { 'content-length': '0' })).toBe('409 file_name_taken');
    expect(await sendHead(restricted, open, 'taken', { 'content-length': TOO_LARGE })).toBe('409 file_name_taken');
  });

  it('for its size', async () => {
    expect(await sendHead(restricted, open, 'fine', { 'content-length': '0' })).toBe('400 invalid_file');
    for (const size of [TOO_LARGE, '999999999999999', '9007199254740993']) {
      expect(await sendHead(restricted, open, 'fine', { 'content-length': size })).toBe('413 limit_exceeded');
    }
  });

  it('for all of this before another upload that is under way, and then for that', async () => {
    const running = await startUpload(owner.session, { applicationId: open, fileName: unique() });
    expect(await sendHead(restricted, open, '..')).toBe('400 VALIDATION_ERROR');
    expect(await sendHead(restricted, UNKNOWN, 'fine')).toBe('404 not_found');
    expect(await sendHead(restricted, closed, 'fine')).toBe('403 application_forbidden');
    expect(await sendHead(restricted, open, 'taken')).toBe('409 file_name_taken');
    expect(await sendHead(restricted, open, 'fine', { 'content-length': '0' })).toBe('400 invalid_file');
    expect(await sendHead(restricted, open, 'fine', { 'content-length': TOO_LARGE })).toBe('413 limit_exceeded');
    expect(await sendHead(restricted, open, 'fine')).toBe('429 rate_limit_reached');
    await running.send(Buffer.from('x'));
    expect(outcome(await running.finish())).toBe('200');
    expect(outcome(await upload(restricted, open, 'fine'))).toBe('200');
  });
});

describe('the other file routes refuse', () => {
  it('an unknown application before an unknown file and a missing name', async () => {
    const rename = { action: 'change_file_name', fileId: UNKNOWN };
    expect(outcome(await owner.session.post(ACTION, rename, { applicationId: UNKNOWN }))).toBe('404 not_found');
    expect(outcome(await restricted.post(ACTION, rename, { applicationId: closed }))).toBe('403 application_forbidden');
    expect(outcome(await restricted.post(ACTION, rename, { applicationId: open }))).toBe('400 bad_request');
    const named = { ...rename, fileName: 'taken' };
    expect(outcome(await restricted.post(ACTION, named, { applicationId: open }))).toBe('404 not_found');
    expect(outcome(await restricted.post(CHECK_NAME, { fileName: 'taken' }, { applicationId: closed }))).toBe(
      '403 application_forbidden',
    );
  });

  it('and change nothing', async () => {
    const before = await readState(owner);
    await restricted.post(ACTION, { action: 'delete_file', fileId: UNKNOWN }, { applicationId: open });
    await unscoped.post(CHECK_NAME, { fileName: 'x' }, { applicationId: open });
    await restricted.post(ACTION, { action: 'change_file_name', fileId: UNKNOWN }, { applicationId: open });
    expect(await readState(owner)).toBe(before);
  });
});
