// Prints the release notes of a version tag: its section of CHANGELOG.md. Fails unless the tag is
// the version of what is published.
import { readFileSync } from 'node:fs';

const [tag = ''] = process.argv.slice(2);
const version = tag.replace(/^v/, '');
const manifests = ['package.json', 'packages/client/package.json', 'packages/cli/package.json'];
const others = manifests.filter((path) => JSON.parse(readFileSync(path, 'utf8')).version !== version);
const sections = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m);
const notes = sections.find((section) => section.startsWith(`${version} - `))?.replace(/^.*\n/, '');
if (others.length > 0 || !notes) {
  const problem = notes
    ? `${tag} is not the version of ${others.join(', ')}.`
    : `CHANGELOG.md has no section "## ${version} - <date>".`;
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
process.stdout.write(`${notes.trim()}\n`);
