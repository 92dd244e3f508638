import { TEXT_NAMES } from '@latchkey/contract/setting-definitions';
import { Document, Scalar } from 'yaml';
import { printable, printableLines } from '../output/text.ts';
import { SETTING_NAMES } from './declaration.ts';
import type { CurrentApplication } from './state.ts';

const HEADER = ` yaml-language-server: $schema=latchkey.schema.json
 Written by "latchkey export". To upload a file, replace its sha256 by the path of a local file.`;

const TEXTS: ReadonlySet<string> = new Set(TEXT_NAMES);

/** A text without quotes may become a number when it is edited. */
const quoted = (value: unknown) => Object.assign(new Scalar(value), { type: Scalar.QUOTE_DOUBLE });

/** Within quotes, the escapes of {@link printableLines} are those of YAML. */
const quoteControls = (_key: unknown, value: unknown) =>
  typeof value === 'string' && printable(value) !== value ? quoted(value) : value;

/** The YAML that declares applications as they are; with an id where a name is not unique. */
export function formatDeclaration(applications: readonly CurrentApplication[]): string {
  const names = applications.map(({ name }) => name);
  const isUnique = (name: string) => names.indexOf(name) === names.lastIndexOf(name);
  const declared = applications.map(({ id, name, settings, levels, files }) => ({
    name,
    ...(!isUnique(name) && { id }),
    settings: Object.fromEntries(SETTING_NAMES.map((name) => [name, TEXTS.has(name) ? quoted(settings[name]) : settings[name]])),
    // The interface accepts no empty list.
    ...(levels.length > 0 && { levels }),
    files: files.map(({ name, sha256 }) => ({ name, sha256 })).sort((a, b) => (a.name < b.name ? -1 : 1)),
  }));
  // An alias would be read as a person's intent.
  const document = new Document({ applications: declared }, quoteControls, { aliasDuplicateObjects: false });
  document.commentBefore = HEADER;
  return printableLines(document.toString({ lineWidth: 0 }));
}
