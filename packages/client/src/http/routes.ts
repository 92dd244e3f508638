import type { paths } from '../generated/openapi.ts';

type Method = 'get' | 'post' | 'patch' | 'delete';

/** Every route as `METHOD path`, such as `GET /api/v1/panel/get-applications`. */
export type Target = {
  [P in keyof paths]: { [M in Method]: paths[P][M] extends object ? `${Uppercase<M>} ${P}` : never }[Method];
}[keyof paths];

type OperationOf<T extends Target> = T extends `${infer M} ${infer P extends keyof paths & string}`
  ? paths[P][Lowercase<M> & Method]
  : never;

type JsonOf<T> = T extends { readonly content: { readonly 'application/json': infer J } } ? J : never;

/** The success envelope of a route. */
export type EnvelopeOf<T extends Target> =
  OperationOf<T> extends { readonly responses: infer R } ? JsonOf<R[keyof R & (200 | 201)]> : never;

/** `data` in the success envelope of a route. */
export type DataOf<T extends Target> = EnvelopeOf<T> extends { readonly data: infer D } ? D : undefined;

/** Optional properties may be undefined, as neither a query nor JSON has those. */
type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

/** The JSON body of a route. */
export type BodyOf<T extends Target> =
  OperationOf<T> extends { readonly requestBody?: infer B }
    ? [NonNullable<B>] extends [never]
      ? undefined
      : Loose<JsonOf<NonNullable<B>>>
    : undefined;

type ParametersOf<T extends Target> = OperationOf<T> extends { readonly parameters: infer P } ? P : never;

/** The query of a route. */
export type QueryOf<T extends Target> = ParametersOf<T> extends { readonly query?: infer Q } ? Loose<NonNullable<Q>> : never;

type PathOf<T extends Target> = ParametersOf<T> extends { readonly path: infer P } ? P : never;

/** Input of a route. Required parts have to be given. */
export type InputOf<T extends Target> = ([PathOf<T>] extends [never] ? unknown : { readonly path: PathOf<T> }) &
  (ParametersOf<T> extends { readonly query: infer Q } ? { readonly query: Loose<Q> } : { readonly query?: QueryOf<T> }) &
  ([BodyOf<T>] extends [never] ? unknown : [BodyOf<T>] extends [undefined] ? unknown : { readonly body: BodyOf<T> });
