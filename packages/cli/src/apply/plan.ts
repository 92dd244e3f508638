import { APPLICATION_FLAGS, APPLICATION_TEXTS, mapSettings } from '@latchkey/contract/setting-definitions';
import { SETTING_NAMES, type SettingName } from './declaration.ts';
import { type ChannelChange, planChannels } from './plan-channels.ts';
import { type FileChange, planFiles } from './plan-files.ts';
import { type CurrentApplication, DeclarationError, type WantedApplication } from './state.ts';

export interface SettingChange {
  readonly name: SettingName;
  /** Absent for a new application. */
  readonly from?: string | boolean;
  readonly to: string | boolean;
}

export interface ApplicationChange {
  readonly action: 'create' | 'change' | 'delete';
  readonly name: string;
  /** Absent for a new application. */
  readonly id?: string;
  readonly settings: readonly SettingChange[];
  readonly levels?: { readonly from: readonly string[]; readonly to: readonly string[] };
  readonly files: readonly FileChange[];
  readonly channels?: readonly ChannelChange[];
}

export interface Plan {
  readonly changes: readonly ApplicationChange[];
  /** Undeclared objects, which stay. */
  readonly undeclared: { readonly applications: number; readonly files: number };
}

export const NEW_SETTINGS = {
  ...mapSettings(APPLICATION_TEXTS, ({ initial }) => initial),
  status: 'online',
  ...mapSettings(APPLICATION_FLAGS, () => false),
} as const;

/** Files that are not declared at all stay as they are. */
const UNPLANNED_FILES = { changes: [], problems: [], undeclared: 0 };

/**
 * Compares what is declared with what the server has.
 *
 * @param prune whether what is not declared is deleted
 * @throws {DeclarationError} naming everything that can't be applied
 */
export function planChanges(wanted: readonly WantedApplication[], current: readonly CurrentApplication[], prune: boolean): Plan {
  const problems: string[] = [];
  const matched = matchApplications(wanted, current, problems);
  const known = new Set(matched.values());
  const undeclared = current.filter((application) => !known.has(application));
  const changes: ApplicationChange[] = [];
  let undeclaredFiles = 0;
  for (const application of wanted) {
    const found = matched.get(application);
    const files = application.files ? planFiles(application.files, found?.files ?? [], prune) : UNPLANNED_FILES;
    const channels = planChannels(application, found);
    problems.push(...[...files.problems, ...channels.problems].map((problem) => `${application.name}: ${problem}`));
    undeclaredFiles += files.undeclared;
    const change = {
      ...planSettings(application, found),
      files: files.changes,
      ...(channels.changes.length > 0 && { channels: channels.changes }),
    };
    if (!found) changes.push({ action: 'create', name: application.name, ...change });
    else if (change.settings.length > 0 || change.levels || change.channels || change.files.length > 0) {
      changes.push({ action: 'change', name: found.name, id: found.id, ...change });
    }
  }
  if (problems.length > 0) throw new DeclarationError(problems.join('\n'));
  if (prune)
    changes.push(...undeclared.map(({ name, id }) => ({ action: 'delete' as const, name, id, settings: [], files: [] })));
  return { changes, undeclared: { applications: prune ? 0 : undeclared.length, files: undeclaredFiles } };
}

function matchApplications(wanted: readonly WantedApplication[], current: readonly CurrentApplication[], problems: string[]) {
  const matched = new Map<WantedApplication, CurrentApplication>();
  for (const application of wanted.filter(({ id }) => id !== undefined)) {
    const found = current.find(({ id }) => id === application.id);
    if (found?.name === application.name) matched.set(application, found);
    else if (found)
      problems.push(`${application.name}: the application ${found.id} is called ${found.name}, and can't be renamed.`);
    else problems.push(`${application.name}: no application has the id ${application.id}. Remove the id to create one.`);
  }
  const withId = new Set(matched.values());
  for (const application of wanted.filter(({ id }) => id === undefined)) {
    const [found, ...others] = current.filter((candidate) => candidate.name === application.name && !withId.has(candidate));
    if (others.length > 0) {
      const ids = [found, ...others].map((candidate) => candidate?.id).join(', ');
      problems.push(`${application.name}: several applications have this name. Add the id of one: ${ids}.`);
    } else if (found) {
      matched.set(application, found);
    }
  }
  return matched;
}

function planSettings({ settings = {}, levels }: WantedApplication, found: CurrentApplication | undefined) {
  const changes: SettingChange[] = [];
  for (const name of SETTING_NAMES) {
    const [from, to] = [(found?.settings ?? NEW_SETTINGS)[name], settings[name]];
    if (to !== undefined && to !== from) changes.push({ name, ...(found && { from }), to });
  }
  const from = found?.levels ?? [];
  const isChanged = levels !== undefined && JSON.stringify(levels) !== JSON.stringify(from);
  return { settings: changes, ...(isChanged && { levels: { from, to: levels } }) };
}

export function countChanges({ changes }: Plan): number {
  return changes.reduce((sum, change) => sum + (changesItself(change) ? 1 : 0) + change.files.length, 0);
}

/** True if more than files of an application change. */
export function changesItself({ action, settings, levels, channels }: ApplicationChange): boolean {
  return action !== 'change' || settings.length > 0 || levels !== undefined || channels !== undefined;
}
