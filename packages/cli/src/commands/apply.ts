import type { ApplyOptions } from '../apply/run-apply.ts';
import { type CliCommand, yesOption } from '../program/command.ts';

/** Loaded when it is needed, as parsing and schemas double the start-up time of other commands. */
const loadApply = () => import('../apply/run-apply.ts');

export function addApply(program: CliCommand): void {
  program
    .command('apply')
    .summary('Apply a YAML file of applications')
    .description('Create, change and delete applications, settings, levels and files as a YAML file declares them')
    .option('-f, --file <path>', 'the file, or - for standard input', 'latchkey.yaml')
    .option('--dry-run', 'show what would change, and change nothing')
    .option('--exit-code', 'with --dry-run, exit with 7 if the server differs from the file')
    .option('--prune', 'also delete applications and files that are not declared')
    .addOption(yesOption())
    .run(async (context, options: ApplyOptions) => (await loadApply()).applyFile(context, options))
    .examples(
      ['latchkey apply --dry-run', 'Show what latchkey.yaml would change'],
      ['latchkey apply --dry-run --exit-code', 'Let a scheduled job find what differs'],
      ['latchkey apply -f release.yaml --yes', 'Apply another file, in a script'],
      ['latchkey export | latchkey apply -f - --dry-run', 'Nothing to change: "No changes."'],
    );
  program
    .command('export')
    .summary('Print all applications as YAML')
    .description('Print the YAML that declares all applications as they are, for "latchkey apply"')
    .option('--schema', 'print the JSON Schema of the YAML instead')
    .run(async (context, options: { schema?: boolean }) => (await loadApply()).exportState(context, options))
    .examples(
      ['latchkey export > latchkey.yaml', 'Write the file for "latchkey apply"'],
      ['latchkey export --schema > latchkey.schema.json', 'Let an editor check and complete it'],
    );
}
