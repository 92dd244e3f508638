import { runProcess } from '@latchkey/cli/run-process';
import { adminPrograms } from './admin.ts';

// `latchkey` of a checkout.
await runProcess(adminPrograms);
