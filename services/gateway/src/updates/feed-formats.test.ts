import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ReleaseSchema } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { expect, it } from 'vitest';
import { appcast } from './feed-formats.ts';

/** Elements of an appcast by their parent, with their attributes, as Sparkle documents them. */
const DOCUMENTED: Readonly<Record<string, readonly string[]>> = {
  ' rss': ['version', 'xmlns:sparkle'],
  'rss channel': [],
  'channel title': [],
  'channel item': [],
  'item title': [],
  'item pubDate': [],
  'item sparkle:version': [],
  'item sparkle:shortVersionString': [],
  'item sparkle:hardwareRequirements': [],
  'item description': ['sparkle:format'],
  'item enclosure': ['url', 'length', 'type', 'sparkle:edSignature'],
};

interface Element {
  readonly path: string;
  readonly attributes: Readonly<Record<string, string>>;
  text: string;
}

const TOKEN = /<(\/?)([\w:]+)((?: [\w:]+="[^"<]*")*)(\/?)>|([^<>]+)/y;
const ENTITY = /&(?!(?:amp|lt|gt|quot|apos);)/;

/** The elements of a document in their order. Throws if it is not well-formed. */
function parse(xml: string): Element[] {
  const [declaration = ''] = /^<\?xml version="1.0" encoding="utf-8"\?>\n/.exec(xml) ?? [];
  expect(declaration).not.toBe('');
  const elements: Element[] = [];
  const open: Array<{ readonly name: string; readonly element: Element }> = [];
  TOKEN.lastIndex = declaration.length;
  while (TOKEN.lastIndex < xml.length) {
    const at = TOKEN.lastIndex;
    const [token, closes, name = '', attributes = '', isEmpty, text] = TOKEN.exec(xml) ?? [];
    if (token === undefined || ENTITY.test(token)) throw new Error(`not well-formed at ${at}: ${xml.slice(at, at + 60)}`);
    const parent = open.at(-1);
    if (text !== undefined) {
      if (parent) parent.element.text += text;
      else if (text.trim() !== '') throw new Error(`text outside: ${text}`);
    } else if (closes) {
      if (open.pop()?.name !== name) throw new Error(`</${name}> closes another element`);
    } else {
      const pairs = [...attributes.matchAll(/([\w:]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]);
      const element = { path: `${parent?.name ?? ''} ${name}`, attributes: Object.fromEntries(pairs), text: '' };
      elements.push(element);
      if (!isEmpty) open.push({ name, element });
    }
  }
  expect(open).toEqual([]);
  return elements;
}

it('is well-formed, and has the elements and attributes that Sparkle documents', () => {
  const publishedAt = timestampFromDate(new Date('2026-05-12T10:00:00Z'));
  const signature = Buffer.alloc(64, 7).toString('base64');
  const signed = { name: 'Acme.zip', platform: 'darwin', arch: 'universal', kind: 'zip', byteSize: 7n, signature };
  const release = create(ReleaseSchema, { version: '1.4.0', notes: ']]> <b a="1">&\0\ud800', publishedAt, artifacts: [signed] });
  const other = create(ReleaseSchema, { version: '1.3.0', publishedAt, artifacts: [{ ...signed, signature: '' }] });
  const elements = parse(appcast('<A> & "B"', [release, other], () => 'https://x.test/?a=1&b=2'));
  for (const { path, attributes } of elements) {
    expect(DOCUMENTED[path], path).toBeDefined();
    for (const name of Object.keys(attributes)) expect(DOCUMENTED[path]).toContain(name);
  }
  const all = (path: string) => elements.filter((element) => element.path === path);
  expect(all(' rss').map(({ attributes }) => attributes)).toEqual([
    { version: '2.0', 'xmlns:sparkle': 'http://www.andymatuschak.org/xml-namespaces/sparkle' },
  ]);
  expect(all('item sparkle:version').map(({ text }) => text)).toEqual(['1.4.0', '1.3.0']);
  expect(all('item description').map(({ text }) => text)).toEqual([']]&gt; &lt;b a=&quot;1&quot;&gt;&amp;\ud800']);
  expect(all('item pubDate').map(({ text }) => text)).toEqual(Array(2).fill('Tue, 12 May 2026 10:00:00 GMT'));
  const enclosure = { url: 'https://x.test/?a=1&amp;b=2', length: '7', type: 'application/octet-stream' };
  expect(all('item enclosure').map(({ attributes }) => attributes)).toEqual([
    { ...enclosure, 'sparkle:edSignature': signature },
    enclosure,
  ]);
});

it('gives Sparkle what each Mac runs, or names ARM', () => {
  const offeredFor = (...archs: readonly string[]) => {
    const artifacts = archs.map((arch) => ({ name: arch, platform: 'mac', arch, kind: 'zip', byteSize: 7n }));
    const release = create(ReleaseSchema, { version: '1.4.0', artifacts });
    const elements = parse(appcast('Acme', [release], ({ name }) => name));
    const elementOf = (path: string) => elements.find((element) => element.path === path);
    return [elementOf('item enclosure')?.attributes.url, elementOf('item sparkle:hardwareRequirements')?.text];
  };
  expect(offeredFor('arm64', 'x64', 'universal')).toEqual(['universal', undefined]);
  expect(offeredFor('arm64', 'x64')).toEqual(['x64', undefined]);
  expect(offeredFor('arm64')).toEqual(['arm64', 'arm64']);
});
