import type { IncomingMessage } from 'node:http';
import type { CallOptions } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import type { Principal, Scope } from '../authentication/principal.ts';
import type { Limit, Standing } from '../limit/limit.ts';
import type { Tag } from '../openapi/tags.ts';
import type { Failure } from './failure.ts';

/** Who may call a route: a key with that scope or any session; a session alone; anyone. */
export type Access = Scope | 'session' | 'public';

/** A limit of a route beside the global ones. */
export interface RouteLimit {
  readonly limit: Limit;
  readonly per: 'ip' | 'account';
  /** Counts only requests that succeed; the others are taken back. */
  readonly successesOnly?: boolean;
}

/** What a handler answers whose success is of the route's other kind. */
export class Otherwise {
  readonly data: unknown;

  constructor(data: unknown) {
    this.data = data;
  }
}

/** What a handler gets. */
export interface RouteRequest<A extends Access, Body, Query, Params, Headers = unknown> {
  readonly principal: A extends 'public' ? undefined : Principal;
  readonly body: Body;
  readonly query: Query;
  readonly params: Params;
  readonly headers: Headers;
  /** The request itself; where the route takes bytes, they are unread. */
  readonly raw: IncomingMessage;
  /** To pass to every call of a service. */
  readonly call: CallOptions;
  readonly clientIp: string;
  /** The tightest limit so far. */
  readonly standing: Standing;
  readonly reply: FastifyReply;
}

/** A route of the REST interface: all that authentication, limits, validation, the envelope and OpenAPI need to know. */
export interface RouteDefinition<
  A extends Access,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
  H extends z.ZodType = z.ZodType,
> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly access: A;
  /** What generated clients call it. */
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly limit?: RouteLimit;
  /** Refuses what is not to count for `limit`, by its head alone: what a page of another site has its visitor's browser ask for. It throws. */
  readonly admit?: (req: IncomingMessage) => void;
  readonly body?: B;
  /** Bodies for the document, by name, which succeed as they are; bytes that are no text are the `data:` URL of them. */
  readonly examples?: Readonly<Record<string, z.input<B>>>;
  /** Takes bytes instead of JSON, of any number and for as long as an upload may take, which the handler reads from `raw`. */
  readonly takesBytes?: boolean;
  /** Whether the bytes may be said to be of any type, as what they are is told from themselves. */
  readonly ofAnyType?: boolean;
  readonly query?: Q;
  readonly params?: P;
  /** Those headers that the handler looks at, by lower-case name. */
  readonly headers?: H;
  /** Media type of the bytes that it answers instead of an envelope; the handler then sends them, or an answer without a body, by itself. */
  readonly answersBytes?: string;
  /** When it answers a redirect, which the handler sends, in the place of an envelope: in words, and whether it never succeeds otherwise. */
  readonly redirects?: { readonly when: string; readonly always: boolean };
  /** Shape of `data` in the success envelope; absent where there is none. */
  readonly data?: z.ZodType;
  /** Fields beside `data` in the success envelope; the handler then answers `{ data, beside }`. */
  readonly beside?: Readonly<Record<string, z.ZodType>>;
  /** Headers of a success beside those that every response has, by name: what each says. */
  readonly successHeaders?: Readonly<Record<string, string>>;
  /** What it may answer beside what its access and schemas imply. */
  readonly failures?: readonly Failure[];
  /** `message` of the success envelope. */
  readonly message: string;
  /** Another, of an {@link Otherwise}. */
  readonly otherMessage?: string;
  /** Does the work and answers `data`, or what `beside` says. A route without it is known and not built yet: 404 once the caller may call it. */
  readonly handle?: (request: RouteRequest<A, z.output<B>, z.output<Q>, z.output<P>, z.output<H>>) => Promise<unknown>;
}

/** A route whose types have served their purpose. */
export type Route = RouteDefinition<Access, z.ZodType, z.ZodType, z.ZodType>;

/** Declares a route; the handler's types follow from the schemas. */
export function defineRoute<
  A extends Access,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
  H extends z.ZodType = z.ZodType,
>(definition: RouteDefinition<A, B, Q, P, H>): Route {
  return definition as unknown as Route;
}
