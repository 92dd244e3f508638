import type { IncomingMessage } from 'node:http';
import type { DescMessage } from '@bufbuild/protobuf';
import type { Scope } from '@latchkey/contract/scopes';
import type { AccountChanges } from '@latchkey/kit/redis/account-changes';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Authenticator } from '../authentication/authenticator.ts';
import type { Cookies } from '../authentication/cookies.ts';
import type { Principal } from '../authentication/credential.ts';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients, MethodName } from '../clients.ts';
import type { CursorSigner } from '../cursor/audit-cursor.ts';
import type { errors } from '../errors.ts';
import type { FilesDataPath } from '../files-data-path.ts';
import type { Limit, LimitState, RateLimits } from '../rate-limit/rate-limits.ts';
import type { ApplicationRef } from './resolve-application.ts';
import { applicationQuery } from './schemas.ts';

export interface RouteContext {
  readonly clients: Clients;
  readonly filesData: FilesDataPath;
  readonly limits: RateLimits;
  readonly signInFailures: SignInFailures;
  readonly cookies: Cookies;
  readonly publicUrl: string;
  /** Redirect target of OpenID Connect; undefined means that browsers get the envelope. */
  readonly oidcReturnUrl: string | undefined;
  /** Base URL of the dashboard; undefined if it is off. */
  readonly dashboardUrl: string | undefined;
  readonly cursors: CursorSigner;
  readonly changes: AccountChanges;
  readonly authenticator: Authenticator;
  /** Clients of an application that are connected now. Rejects while Redis is away. */
  readonly countLiveClients: (applicationId: string) => Promise<number>;
}

export const TAGS = {
  Applications: 'Software products that are licensed through the service.',
  'Application settings': 'Status, version, license requirements and runtime keys of an application.',
  'License levels': 'Names of the levels that licenses of an application may have.',
  Files: 'Private files of an application.',
  Releases: 'Versions of an application, their files and channels, and the feeds that updaters read.',
  'API keys': 'Management API keys, which scripts call this interface with.',
  Accounts: 'Sign-up, sign-in, sessions, two-factor authentication, avatars, limits and the audit log.',
} as const;

export type Tag = keyof typeof TAGS;

/** Callers of a route: a key with that scope or any session; a session alone; anyone. */
export type Access = Scope | 'session' | 'public';

export type ApplicationIn = 'query' | 'body';

/** A called method, the response to a forwarded body, or an error of the gateway. */
export type Failure = MethodName | DescMessage | keyof typeof errors;

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS';

export interface RouteLimit {
  readonly limit: Limit;
  /** `application` counts each network for the application of the path, of public reads. */
  readonly per: 'ip' | 'account' | 'application';
  readonly successesOnly?: boolean;
}

export class AlternativeSuccess {
  readonly data: unknown;

  constructor(data: unknown) {
    this.data = data;
  }
}

export interface RouteRequest<A extends Access, In, Body, Query, Params, Headers = unknown> {
  readonly principal: A extends 'public' ? undefined : Principal;
  /** The application of the route. Services check that the account owns it. */
  readonly application: In extends ApplicationIn ? ApplicationRef : undefined;
  readonly body: Body;
  readonly query: Query;
  readonly params: Params;
  readonly headers: Headers;
  /** The request itself; its body is unread where the route takes bytes. */
  readonly raw: IncomingMessage;
  readonly clientIp: string;
  readonly limitState: LimitState;
  readonly reply: FastifyReply;
}

/** A route of the REST interface, as authentication, limits, validation and OpenAPI need it. */
export interface RouteDefinition<
  A extends Access,
  In extends ApplicationIn | undefined,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
  H extends z.ZodType = z.ZodType,
> {
  /** The schema with `applicationId`. The query is that id alone unless `query` is set. */
  readonly application?: In;
  readonly summary: string;
  readonly description?: string;
  readonly limit?: RouteLimit;
  /** Throws for requests that must not count against `limit`, as other sites can cause them. */
  readonly checkHead?: (req: IncomingMessage) => void;
  /** Headers of every response, errors included. */
  readonly headersAlways?: Readonly<Record<string, string>>;
  /** Status of a success; 200 unless set. With 204 there is no envelope. */
  readonly successStatus?: 201 | 204;
  readonly body?: B;
  /** The exact schema for the document, where `body` leaves rules to the handler. */
  readonly documentedBody?: z.ZodType;
  /** True if the body may be absent, which is the same as `{}`. */
  readonly isBodyOptional?: boolean;
  /** Valid bodies by name. */
  readonly examples?: Readonly<Record<string, z.input<B>>>;
  /** Takes a form and responds without an envelope, errors too (RFC 6749, 5). */
  readonly isOAuth?: boolean;
  /**
   * Takes bytes instead of JSON: of `application/octet-stream`, of any type but forms, or a chunk
   * of a resumable upload.
   */
  readonly bytesBody?: 'plain' | 'any' | 'chunk';
  readonly query?: Q;
  readonly params?: P;
  /** Headers that the handler reads, by lower-case name. */
  readonly headers?: H;
  /** Media type of the bytes that the handler sends instead of an envelope. */
  readonly bytesResponse?: string;
  /** Condition of a redirect instead of an envelope, and whether it always holds. */
  readonly redirects?: { readonly when: string; readonly always: boolean };
  readonly data?: z.ZodType;
  /** True if the response may be large: few of an account are made and sent concurrently. */
  readonly isLarge?: boolean;
  /** Rows of a page, of which the envelope has the number; the handler returns `{ data, total }`. */
  readonly pageSize?: number;
  /** Meaning of each further header of a success, by name. */
  readonly successHeaders?: Readonly<Record<string, string>>;
  /**
   * Sources of its errors, besides those that its access and schemas imply, and the method that has
   * the name of the route.
   */
  readonly failures?: readonly Failure[];
  /** In the envelope, unless the route has none. */
  readonly message?: string;
  readonly alternativeMessage?: string;
  /**
   * Does the work and returns `data`, anything without it, or `data` and the `total` of pages.
   * Its JSON follows from the schema (`present.ts`).
   */
  readonly handle: (request: RouteRequest<A, In, z.output<B>, z.output<Q>, z.output<P>, z.output<H>>) => Promise<unknown>;
}

export interface Route extends RouteDefinition<Access, ApplicationIn | undefined, z.ZodType, z.ZodType, z.ZodType> {
  readonly method: Method;
  readonly url: string;
  readonly message: string;
  readonly access: Access;
  /** Its key in its file, and its name in generated clients. */
  readonly operationId: string;
  readonly tag: Tag;
}

export type Definition = Omit<Route, 'operationId' | 'tag'>;

/**
 * Declares a route; the handler's types follow from the schemas.
 *
 * @param target method and path, with `:name` for each path parameter
 */
export function defineRoute<
  A extends Access,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
  H extends z.ZodType = z.ZodType,
  In extends ApplicationIn | undefined = undefined,
>(target: `${Method} ${string}`, access: A, definition: RouteDefinition<A, In, B, Q, P, H>): Definition {
  const [method, url] = target.split(' ') as [Method, string];
  const query = definition.application === 'query' ? { query: applicationQuery } : {};
  return { message: '', ...query, ...definition, method, url, access } as unknown as Route;
}

/** An object that has a name in the document, which describes it once. */
export const component = <F extends z.core.$ZodLooseShape>(id: string, fields: F) => z.object(fields).meta({ id });
