import { type Access, defineRoute, type Route } from '../route/route.ts';

const UNBUILT: ReadonlyArray<readonly [Route['method'], string, Access]> = [
  ['POST', 'upload-avatar', 'session'],
  ['GET', 'avatar', 'session'],
];

/**
 * Routes of specification 4.2 whose service does not exist yet. They are known, so that authentication, limits and scopes are right, and
 * answer 404 to whoever may call them. They are not in the OpenAPI document.
 */
export function unbuiltRoutes(): Route[] {
  return UNBUILT.map(([method, name, access]) =>
    defineRoute({ method, url: `/api/v1/panel/${name}`, access, tag: 'Files', summary: name, message: '' }),
  );
}
