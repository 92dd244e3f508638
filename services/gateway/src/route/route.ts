import type { IncomingMessage } from 'node:http';
import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import type { Principal, Scope } from '../authentication/principal.ts';
import type { errors } from '../errors.ts';
import type { Limit, LimitState } from '../limit/limits.ts';
import type { ApplicationRef } from './application.ts';

/** Groups of routes in the document. */
export const TAGS = {
  Applications: 'Software products that are licensed through the service.',
  'Application settings': 'Status, version, license requirements and runtime keys of an application.',
  'License levels': 'Names of the levels that licenses of an application may have.',
  Files: 'Private files of an application.',
  'API keys': 'Management API keys, which scripts call this interface with.',
  Accounts: 'Sign-up, sign-in, sessions, two-factor authentication, avatars, limits and the audit log.',
} as const;

export type Tag = keyof typeof TAGS;

/** Who may call a route: a key with that scope or any session; a session alone; anyone. */
export type Access = Scope | 'session' | 'public';

/** Where the id of the application is. */
export type ApplicationIn = 'query' | 'body';

/** A method that the handler calls, the response to a body that it passes on, or an error of the gateway. */
export type Failure = DescMethod | DescMessage | keyof typeof errors;

/** A limit of a route beside the global ones. */
export interface RouteLimit {
  readonly limit: Limit;
  readonly per: 'ip' | 'account';
  /** Counts only requests that succeed; the others are refunded. */
  readonly successesOnly?: boolean;
}

/** What a handler returns for the route's other kind of success. */
export class Otherwise {
  readonly data: unknown;

  constructor(data: unknown) {
    this.data = data;
  }
}

/** What a handler gets. */
export interface RouteRequest<A extends Access, In, Body, Query, Params, Headers = unknown> {
  readonly principal: A extends 'public' ? undefined : Principal;
  /** The application of the route, which the principal may use if the account has it. */
  readonly application: In extends ApplicationIn ? ApplicationRef : undefined;
  readonly body: Body;
  readonly query: Query;
  readonly params: Params;
  readonly headers: Headers;
  /** The request itself; its body is unread where the route takes bytes. */
  readonly raw: IncomingMessage;
  readonly clientIp: string;
  /** The tightest limit so far. */
  readonly limitState: LimitState;
  readonly reply: FastifyReply;
}

/** A route of the REST interface: all that authentication, limits, validation, the envelope and OpenAPI need. */
export interface RouteDefinition<
  A extends Access,
  In extends ApplicationIn | undefined,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
  H extends z.ZodType = z.ZodType,
> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly access: A;
  /** Where the schemas have `applicationId`. The gate checks that the principal may use it. */
  readonly application?: In;
  /** Name in generated clients. */
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly limit?: RouteLimit;
  /** Rejects by throwing, before `limit` counts: requests that a page of another site has its visitor's browser make. */
  readonly admit?: (req: IncomingMessage) => void;
  readonly body?: B;
  /** Bodies for the document by name, which succeed unchanged; bytes that are no text are a `data:` URL. */
  readonly examples?: Readonly<Record<string, z.input<B>>>;
  /** Takes bytes instead of JSON, which the handler reads from `raw` for as long as an upload may take. */
  readonly takesBytes?: boolean;
  /** Whether the bytes may have any media type, since the content itself shows it. */
  readonly ofAnyType?: boolean;
  readonly query?: Q;
  readonly params?: P;
  /** Headers that the handler reads, by lower-case name. */
  readonly headers?: H;
  /** Media type of the bytes that the handler sends instead of an envelope. */
  readonly answersBytes?: string;
  /** When the handler sends a redirect instead of an envelope, and whether it never succeeds otherwise. */
  readonly redirects?: { readonly when: string; readonly always: boolean };
  /** Shape of `data` in the success envelope; absent where there is none. */
  readonly data?: z.ZodType;
  /** Fields beside `data` in the success envelope; the handler then returns `{ data, beside }`. */
  readonly beside?: Readonly<Record<string, z.ZodType>>;
  /** Headers of a success beside those of every response: the meaning of each by name. */
  readonly successHeaders?: Readonly<Record<string, string>>;
  /** Where its errors come from, beside those that its access and schemas imply. */
  readonly failures?: readonly Failure[];
  /** `message` of the success envelope. */
  readonly message: string;
  /** `message` of an {@link Otherwise}. */
  readonly otherMessage?: string;
  /** Does the work and returns `data`, or what `beside` says. */
  readonly handle: (request: RouteRequest<A, In, z.output<B>, z.output<Q>, z.output<P>, z.output<H>>) => Promise<unknown>;
}

/** A route whose types have served their purpose. */
export type Route = RouteDefinition<Access, ApplicationIn | undefined, z.ZodType, z.ZodType, z.ZodType>;

/** Declares a route; the handler's types follow from the schemas. */
export function defineRoute<
  A extends Access,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
  H extends z.ZodType = z.ZodType,
  In extends ApplicationIn | undefined = undefined,
>(definition: RouteDefinition<A, In, B, Q, P, H>): Route {
  return definition as unknown as Route;
}
