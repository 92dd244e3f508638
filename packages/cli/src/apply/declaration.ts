import { basename } from 'node:path';
import { FILE_NAME, FILE_NAME_LENGTH_MAX, FILE_NAME_RULE, isFileName } from '@latchkey/contract/file-name';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { APPLICATION_NAME, describeLength, type Length } from '@latchkey/contract/lengths';
import { LICENSE_LEVEL, LICENSE_LEVELS_MAX } from '@latchkey/contract/license-level';
import { CHANNEL, CHANNEL_RULE, isSemver, SEMVER_RULE } from '@latchkey/contract/release';
import {
  APPLICATION_FLAGS,
  APPLICATION_TEXTS,
  FLAG_NAMES,
  mapSettings,
  STATUSES,
  TEXT_NAMES,
} from '@latchkey/contract/setting-definitions';
import { z } from 'zod';

/** Names of settings, in the order in which they are shown and exported. */
export const SETTING_NAMES = [...TEXT_NAMES, 'status', ...FLAG_NAMES] as const;

// Length checks of zod also run on objects with a `length`, and throw. Refinements do not.
/** Text of this many code points that the server stores unchanged. */
const textOf = (bounds: Length, description: string) =>
  z
    .string()
    .refine(
      (text) => {
        const { length } = Array.from(text);
        return length >= bounds.min && length <= bounds.max && text === text.trim() && text.isWellFormed();
      },
      `must be ${describeLength(bounds)} without white space around`,
    )
    .meta({ description, minLength: bounds.min, maxLength: bounds.max });

const applicationName = textOf(APPLICATION_NAME, 'Identifies the application, unless an id does.').refine(
  (name) => name === withoutInvisible(name),
  'must be in Unicode NFC and have no invisible characters',
);
const fileName = z
  .string()
  .refine(isFileName, FILE_NAME_RULE)
  .meta({ maxLength: FILE_NAME_LENGTH_MAX, pattern: FILE_NAME.source });
const licenseLevel = textOf(LICENSE_LEVEL, 'License level.');

const settings = z.strictObject({
  ...mapSettings(APPLICATION_TEXTS, ({ length, meaning }) => textOf(length, meaning).optional()),
  status: z.enum(STATUSES).optional(),
  ...mapSettings(APPLICATION_FLAGS, ({ meaning }) =>
    z
      .boolean()
      .optional()
      .meta({ description: `Whether ${meaning}.` }),
  ),
});

const localFile = z.strictObject({
  path: z
    .string()
    .refine((path) => path !== '', 'must not be empty')
    .meta({ description: 'Path of the file to upload, relative to this document.', minLength: 1 }),
  name: fileName.optional().meta({ description: 'Name on the server. Default: the last part of the path.' }),
});

const storedFile = z.strictObject({
  name: fileName.meta({ description: 'Name on the server.' }),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits')
    .meta({ description: 'SHA-256 of a file that the server already has, as export writes it.' }),
});

const file = z
  .union([localFile, storedFile], { error: 'must have a path to upload, or the name and sha256 of a stored file' })
  .superRefine((declared, ctx) => {
    if (fileName.safeParse(nameOf(declared)).success) return;
    ctx.addIssue({
      code: 'custom',
      path: ['path'],
      message: `ends in a name that the server rejects: add a name. It ${FILE_NAME_RULE}`,
    });
  });

const channel = z.strictObject({
  version: z
    .string()
    .refine(isSemver, SEMVER_RULE)
    .meta({ description: 'Version that is published. Its draft is there already.' }),
  rolloutPercent: z
    .int()
    .refine((percent) => percent >= 0 && percent <= 100, 'must be 0 to 100')
    .optional()
    .meta({ description: 'Share of the clients that are offered it. If absent, it stays.', minimum: 0, maximum: 100 }),
});

const application = z.strictObject({
  name: applicationName,
  id: z.uuid().optional().meta({ description: 'Needed where several applications have the same name.' }),
  settings: settings.optional().meta({ description: 'Settings that are absent stay as they are.' }),
  levels: z
    .array(licenseLevel)
    .refine(({ length }) => length >= 1 && length <= LICENSE_LEVELS_MAX, `must be 1 to ${LICENSE_LEVELS_MAX} levels`)
    .superRefine(rejectDuplicates((level: string) => level, 'is a level twice'))
    .optional()
    .meta({
      description: 'All license levels, in their order. If absent, they stay as they are.',
      minItems: 1,
      maxItems: LICENSE_LEVELS_MAX,
      uniqueItems: true,
    }),
  files: z
    .array(file)
    .superRefine(rejectDuplicates(nameOf, 'has the name of another file'))
    .optional()
    .meta({ description: 'All files. Others are deleted with --prune only. If absent, files stay as they are.' }),
  channels: z
    .record(z.string().regex(CHANNEL, CHANNEL_RULE), channel)
    .optional()
    .meta({ description: 'Published version of channels. Others stay as they are.' }),
});

export const declaration = z
  .strictObject(
    {
      applications: z
        .array(application)
        .superRefine(rejectDuplicates(({ id, name }) => id ?? name, 'is declared twice: give each application its id')),
    },
    { error: ({ code }) => (code === 'invalid_type' ? 'must begin with "applications:"' : undefined) },
  )
  .meta({ title: 'Applications of a Latchkey account', description: 'Read by `latchkey apply`, written by `latchkey export`.' });

export type Declaration = z.infer<typeof declaration>;
export type DeclaredApplication = Declaration['applications'][number];
export type DeclaredFile = z.infer<typeof localFile> | z.infer<typeof storedFile>;
export type SettingName = (typeof SETTING_NAMES)[number];

export function nameOf(declared: DeclaredFile): string {
  return declared.name ?? ('path' in declared ? basename(declared.path) : '');
}

function rejectDuplicates<T>(keyOf: (item: T) => string, message: string) {
  return (items: readonly T[], ctx: z.core.$RefinementCtx<readonly T[]>) => {
    const seen = new Set<string>();
    for (const [index, item] of items.entries()) {
      const key = keyOf(item);
      if (seen.has(key)) ctx.addIssue({ code: 'custom', path: [index], message });
      seen.add(key);
    }
  };
}

export function declarationSchema(): object {
  return z.toJSONSchema(declaration, { io: 'input' });
}
