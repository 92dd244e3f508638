import { runProcess } from '@latchkey/cli/program/run-process';
import { adminPrograms } from './admin.ts';

await runProcess(adminPrograms);
