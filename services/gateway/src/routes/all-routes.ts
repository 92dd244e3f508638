import type { Definition, Route, RouteContext, Tag } from '../routing/route.ts';
import { accountRoutes } from './account.ts';
import { accountLimitsRoutes } from './account-limits.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { applicationListRoutes } from './application-list.ts';
import { applicationSettingRoutes } from './application-settings.ts';
import { applicationRoutes } from './applications.ts';
import { auditLogRoutes } from './audit-log.ts';
import { authRoutes } from './auth.ts';
import { avatarRoutes } from './avatar.ts';
import { changeRoutes } from './changes.ts';
import { eventRoutes } from './events.ts';
import { fileRoutes } from './files.ts';
import { licenseLevelRoutes } from './license-levels.ts';
import { oidcRoutes } from './oidc.ts';
import { oidcLinkRoutes } from './oidc-links.ts';
import { credentialRoutes } from './password-and-email.ts';
import { releaseSettingRoutes } from './release-settings.ts';
import { releaseRoutes } from './releases.ts';
import { runtimeKeyRoutes } from './runtime-keys.ts';
import { sessionRoutes } from './sessions.ts';
import { tokenRoutes } from './token.ts';
import { trustedIssuerRoutes } from './trusted-issuers.ts';
import { twoFactorRoutes } from './two-factor.ts';
import { updateRoutes } from './updates.ts';
import { uploadFileRoutes } from './upload-file.ts';
import { uploadRoutes } from './uploads.ts';
import { usageRoutes } from './usage.ts';

/** Route files in the order of the OpenAPI document, each with its tag there. */
const ROUTES: ReadonlyArray<readonly [Tag, (context: RouteContext) => Readonly<Record<string, Definition>>]> = [
  ['Applications', applicationRoutes],
  ['Applications', applicationListRoutes],
  ['Application settings', applicationSettingRoutes],
  ['Application settings', runtimeKeyRoutes],
  ['Applications', eventRoutes],
  ['Applications', usageRoutes],
  ['License levels', licenseLevelRoutes],
  ['API keys', apiKeyRoutes],
  ['API keys', trustedIssuerRoutes],
  ['API keys', tokenRoutes],
  ['Accounts', authRoutes],
  ['Accounts', sessionRoutes],
  ['Accounts', credentialRoutes],
  ['Accounts', twoFactorRoutes],
  ['Accounts', oidcRoutes],
  ['Accounts', oidcLinkRoutes],
  ['Accounts', accountRoutes],
  ['Accounts', changeRoutes],
  ['Files', fileRoutes],
  ['Accounts', accountLimitsRoutes],
  ['Accounts', auditLogRoutes],
  ['Files', uploadFileRoutes],
  ['Files', uploadRoutes],
  ['Accounts', avatarRoutes],
  ['Releases', releaseRoutes],
  ['Releases', releaseSettingRoutes],
  ['Releases', updateRoutes],
];

export function createRoutes(context: RouteContext): Route[] {
  return ROUTES.flatMap(([tag, create]) =>
    Object.entries(create(context)).map(([operationId, route]) => ({ ...route, operationId, tag })),
  );
}
