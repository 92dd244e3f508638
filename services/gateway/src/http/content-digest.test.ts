import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseContentDigest } from './content-digest.ts';

const SHA256 = hash('sha256', 'x', 'buffer');
const TEXT = `:${SHA256.toString('base64')}:`;
const OTHER = `:${Buffer.alloc(32).toString('base64')}:`;

describe('a Content-Digest', () => {
  it.each([
    `sha-256=${TEXT}`,
    `  sha-256=${TEXT} `,
    `sha-256=${TEXT.replace('=:', ':')}`,
    `sha-512=:AAAA:, sha-256=${TEXT}`,
    `sha-256=${TEXT},\tunixsum=:AAA=:`,
    `md5="not bytes";a=1;b, adler=(1 "a" b);c=?1, x=-1.5, z, sha-256=${TEXT};p="q"`,
    `sha-256=${OTHER}, sha-256=${TEXT}`,
  ])('tells the SHA-256: %s', (field) => {
    expect(parseContentDigest(field)).toEqual(SHA256);
  });

  it.each(['', ' ', 'sha-512=:AAAA:', 'md5=:AAAA:, unixcksum=1'])('may tell none: %j', (field) => {
    expect(parseContentDigest(field)).toEqual(Buffer.alloc(0));
  });

  it.each([
    'sha-256',
    'sha-256=',
    'sha-256=1',
    'sha-256=::',
    'sha-256=:AAAA:',
    `sha-256=${TEXT.slice(1)}`,
    `sha-256=${TEXT.slice(0, -1)}`,
    `sha-256="${SHA256.toString('base64')}"`,
    `sha-256=(${TEXT})`,
    `sha-256=:${Buffer.alloc(33).toString('base64')}:`,
    `sha-256=:${SHA256.toString('hex')}:`,
    `sha-256=:-_${TEXT.slice(3)}`,
    `SHA-256=${TEXT}`,
    `sha-256 =${TEXT}`,
    `sha-256=${TEXT},`,
    `,sha-256=${TEXT}`,
    `sha-256=${TEXT} sha-512=:AAAA:`,
    `sha-256=${TEXT};`,
    `x="é", sha-256=${TEXT}`,
    `sha-256=${TEXT}, sha-256=:AAAA:`,
  ])('is refused where it is malformed: %s', (field) => {
    expect(parseContentDigest(field)).toBeUndefined();
  });

  it.each([
    `a=(${' '.repeat(15_990)}x`,
    `a=(${' '.repeat(16_000)}`,
    `a=(${'1 '.repeat(8_000)}`,
    `a="${'\\\\'.repeat(8_000)}`,
    `a=:${'A'.repeat(16_000)}`,
    `a=%"${'%c3'.repeat(5_000)}`,
    `a${';a=1'.repeat(4_000)};`,
    'a=('.repeat(5_000),
    'a,'.repeat(8_000),
    'a'.repeat(16_000).concat('='),
  ])('is refused in linear time, as long as a header can be: %.10s…', (field) => {
    const before = process.threadCpuUsage().user;
    for (let i = 0; i < 10; i += 1) expect(parseContentDigest(field)).toBeUndefined();
    // A quadratic parser takes 100 ms for one of these.
    expect(process.threadCpuUsage().user - before).toBeLessThan(300_000);
  });
});
