import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ReleaseSchema } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { expect, it } from 'vitest';
import { appcast } from './feed-formats.ts';

it('an appcast has the elements and attributes that Sparkle documents, with escaped texts', () => {
  const publishedAt = timestampFromDate(new Date('2026-05-12T10:00:00Z'));
  const unsigned = { name: 'Acme.zip', platform: 'darwin', arch: 'universal', kind: 'zip', byteSize: 7n };
  const signature = Buffer.alloc(64, 7).toString('base64');
  const releases = [
    { version: '1.4.0', notes: `]]> <b a="1">&'\0\ud800`, publishedAt, artifacts: [{ ...unsigned, signature }] },
    { version: '1.3.0', publishedAt, artifacts: [unsigned] },
  ].map((release) => create(ReleaseSchema, release));
  expect(appcast('<A> & "B"', releases, () => 'https://x.test/?a=1&b=2')).toBe(`<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:sparkle="http://www.andymatuschak.org/xml-namespaces/sparkle">
<channel>
<title>&lt;A&gt; &amp; &quot;B&quot;</title>
<item>
<title>1.4.0</title>
<pubDate>Tue, 12 May 2026 10:00:00 GMT</pubDate>
<sparkle:version>1.4.0</sparkle:version>
<sparkle:shortVersionString>1.4.0</sparkle:shortVersionString>
<description sparkle:format="plain-text">]]&gt; &lt;b a=&quot;1&quot;&gt;&amp;&apos;\ud800</description>
<enclosure url="https://x.test/?a=1&amp;b=2" length="7" type="application/octet-stream" sparkle:edSignature="${signature}"/>
</item>
<item>
<title>1.3.0</title>
<pubDate>Tue, 12 May 2026 10:00:00 GMT</pubDate>
<sparkle:version>1.3.0</sparkle:version>
<sparkle:shortVersionString>1.3.0</sparkle:shortVersionString>
<enclosure url="https://x.test/?a=1&amp;b=2" length="7" type="application/octet-stream"/>
</item>
</channel>
</rss>
`);
});

it('gives Sparkle what each Mac runs, or names ARM', () => {
  const offeredFor = (...archs: readonly string[]) => {
    const artifacts = archs.map((arch) => ({ name: arch, platform: 'mac', arch, kind: 'zip', byteSize: 7n }));
    const xml = appcast('Acme', [create(ReleaseSchema, { version: '1.4.0', artifacts })], ({ name }) => name);
    return [/url="(.*?)"/.exec(xml)?.[1], /<sparkle:hardwareRequirements>(.*?)</.exec(xml)?.[1]];
  };
  expect(offeredFor('arm64', 'x64', 'universal')).toEqual(['universal', undefined]);
  expect(offeredFor('arm64', 'x64')).toEqual(['x64', undefined]);
  expect(offeredFor('arm64')).toEqual(['arm64', 'arm64']);
});
