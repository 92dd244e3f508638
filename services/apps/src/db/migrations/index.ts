import type { Migrations } from '@latchkey/kit/database/migrate';
import * as applications from './20261120-180000-applications.ts';
import * as eventDelivery from './20261120-220000-event-delivery.ts';
import * as auditLog from './20261121-060000-audit-log.ts';
import * as eventOrigin from './20261121-070000-event-origin.ts';

/** All migrations of the service, forward only. */
export const migrations: Migrations = {
  '20261120-180000-applications': applications,
  '20261120-220000-event-delivery': eventDelivery,
  '20261121-060000-audit-log': auditLog,
  '20261121-070000-event-origin': eventOrigin,
};
