import { runProcess } from '@latchkey/cli/program/run-process';
import { adminPrograms } from './admin.ts';

// `latchkey` of a checkout.
await runProcess(adminPrograms);
