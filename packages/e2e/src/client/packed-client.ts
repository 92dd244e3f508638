import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '@latchkey/launcher/program';

const run = promisify(execFile);

/**
 * Packs the client as it would be published, and installs it into an empty project.
 *
 * @param folder which is empty
 * @returns the folder of the project
 */
export async function installPackedClient(folder: string): Promise<string> {
  const [checkout, project] = [join(folder, 'checkout'), join(folder, 'project')];
  const source = join(checkout, 'packages', 'client');
  await Promise.all([mkdir(source, { recursive: true }), mkdir(project)]);
  // A copy, as npm pack exchanges package.json for a moment.
  const isPart = (path: string) => !/\/(node_modules|dist)$/.test(path);
  await cp(join(ROOT, 'packages/client'), source, { recursive: true, filter: isPart });
  await cp(join(ROOT, 'tsconfig.json'), join(checkout, 'tsconfig.json'));
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  await run('npm', ['pack', '--pack-destination', folder], { cwd: source });
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  const tarball = join(folder, 'latchkey-client-0.1.0.tgz');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project });
  return project;
}
