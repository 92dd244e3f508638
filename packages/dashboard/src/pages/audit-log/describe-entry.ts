import type { AuditEntry, Scope } from '@latchkey/client';
import { APPLICATION_FLAGS } from '@latchkey/contract/setting-definitions';
import { formatExact } from '../../components/relative-time.tsx';
import { formatBytes } from '../../format/bytes.ts';
import { nameScopes } from '../api-keys/scopes.tsx';
import { nameAction } from './action-names.ts';

/** Names of things that still exist, by id. */
export interface Names {
  readonly applications: ReadonlyMap<string, string>;
  readonly apiKeys: ReadonlyMap<string, string>;
}

/** Labels that are not the words of the field. */
const LABELS: Readonly<Record<string, string>> = {
  field: 'Setting',
  value: 'New value',
  previous: 'Value before',
  displayName: 'File name',
  byteSize: 'Size',
  checksum: 'SHA-256',
  because: 'Reason',
  type: 'Runtime key',
  applicationId: 'Deleted application',
  applicationIds: 'Applications',
};

/** Label of a change: `expiresAt` is "Expires at". */
export function nameField(field: string): string {
  const words = field.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return Object.hasOwn(LABELS, field) ? (LABELS[field] ?? '') : words.charAt(0).toUpperCase() + words.slice(1);
}

const nameSetting = (field: unknown) =>
  Object.entries(APPLICATION_FLAGS).find(([name]) => name === field)?.[1].title ?? nameField(String(field));

const nameKeyType = (type: unknown) => (type === 'httpKey' ? 'HTTP key' : type === 'socketKey' ? 'Socket key' : String(type));

/** A value of a change in words. */
export function describeValue(field: string, value: unknown, applications: Names['applications']): string {
  if (typeof value === 'boolean') return value ? 'On' : 'Off';
  if (value === null) return 'None';
  if (Array.isArray(value)) {
    const texts =
      field === 'scopes' ? nameScopes(value as Scope[]) : value.map((item) => applications.get(String(item)) ?? String(item));
    return texts.join(', ');
  }
  if (field === 'field') return nameSetting(value);
  if (field === 'type') return nameKeyType(value);
  if (field === 'byteSize') return formatBytes(Number(value));
  if (field === 'expiresAt') return formatExact(String(value));
  if (['reason', 'because', 'by'].includes(field)) return String(value).replaceAll('_', ' ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The thing that was changed and its change: the application, the key, values before and after. */
export function describeChange({ changes, applicationId, subject }: AuditEntry, names: Names): string | undefined {
  const application = names.applications.get(applicationId ?? subject.id);
  const key = subject.kind === 'api_key' ? names.apiKeys.get(subject.id) : undefined;
  const name = changes.name === undefined ? undefined : String(changes.name);
  const parts = [name ?? key, name === application ? undefined : application, describeDetail(changes, names)];
  return parts.filter((part) => part !== undefined).join(', ') || undefined;
}

function describeDetail(changes: AuditEntry['changes'], names: Names): string | undefined {
  const { field, value, previous, displayName, levels, type, version, channel } = changes;
  const text = (changed: unknown) => describeValue('value', changed, names.applications);
  if (displayName !== undefined) return previous === undefined ? text(displayName) : `${text(previous)} → ${text(displayName)}`;
  if (field === 'status') return undefined;
  if (field !== undefined) return `${nameSetting(field)}: ${text(previous)} → ${text(value)}`;
  if (levels !== undefined) return text(levels);
  if (type !== undefined) return nameKeyType(type);
  return version === undefined ? undefined : `${text(version)} (${text(channel)})`;
}

const ACTORS: Readonly<Record<AuditEntry['actor']['kind'], string>> = {
  session: 'In a session',
  api_key: 'With an API key',
  operator: 'By the operator',
  service: 'By Latchkey',
  anonymous: 'Without signing in',
};

export function describeActor({ actor: { kind, credentialId, address } }: AuditEntry, { apiKeys }: Names): string {
  const key = kind === 'api_key' && credentialId !== null ? apiKeys.get(credentialId) : undefined;
  return `${key === undefined ? ACTORS[kind] : `With the API key ${key}`}${address === null ? '' : ` from ${address}`}`;
}

/** True if the words of an entry contain a text, without regard to case. */
export function matchesText(entry: AuditEntry, names: Names, text: string): boolean {
  const words = [
    nameAction(entry.action),
    describeChange(entry, names) ?? '',
    describeActor(entry, names),
    entry.requestId ?? '',
  ];
  return words.join('\n').toLowerCase().includes(text.trim().toLowerCase());
}
