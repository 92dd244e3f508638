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

type CreateRoutes = (context: RouteContext) => Readonly<Record<string, Definition>>;

/** Route files in the order of the OpenAPI document, with their tag there. */
const ROUTES: ReadonlyArray<readonly [Tag, ...CreateRoutes[]]> = [
  ['Applications', applicationRoutes, applicationListRoutes],
  ['Application settings', applicationSettingRoutes, runtimeKeyRoutes],
  ['Applications', eventRoutes, usageRoutes],
  ['License levels', licenseLevelRoutes],
  ['API keys', apiKeyRoutes, trustedIssuerRoutes, tokenRoutes],
  ['Accounts', authRoutes, sessionRoutes, credentialRoutes, twoFactorRoutes],
  ['Accounts', oidcRoutes, oidcLinkRoutes, accountRoutes, changeRoutes],
  ['Files', fileRoutes],
  ['Accounts', accountLimitsRoutes, auditLogRoutes],
  ['Files', uploadFileRoutes, uploadRoutes],
  ['Accounts', avatarRoutes],
  ['Releases', releaseRoutes, releaseSettingRoutes, updateRoutes],
];

export function createRoutes(context: RouteContext): Route[] {
  return ROUTES.flatMap(([tag, ...files]) =>
    files.flatMap((create) => Object.entries(create(context))).map(([operationId, route]) => ({ ...route, operationId, tag })),
  );
}
