import type { DescMethodUnary } from '@bufbuild/protobuf';
import { type ContextValues, createContextValues, type HandlerContext } from '@connectrpc/connect';
import { timeLeftMs } from './call-bounds.ts';

/** Request headers as a plain record, or anything else that `Headers` accepts. */
export type HeaderSource = ConstructorParameters<typeof Headers>[0];

/**
 * A handler context that makes its headers, signal and values only when a handler asks for them. Connect's own makes five
 * AbortControllers and three Headers for every call, which costs more than most handlers.
 */
export class UnaryContext implements HandlerContext {
  readonly method: DescMethodUnary;
  readonly protocolName = 'connect';
  readonly requestMethod = 'POST';
  readonly url: string;
  readonly #headerSource: HeaderSource;
  readonly #deadlineAt: number;
  #contextValues: ContextValues | undefined;
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;
  #requestHeader: Headers | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;

  /** @param timeoutMs time until the deadline, in milliseconds */
  constructor(method: DescMethodUnary, url: string, header: HeaderSource, timeoutMs: number, values?: ContextValues) {
    this.method = method;
    this.url = url;
    this.#headerSource = header;
    this.#deadlineAt = performance.now() + timeoutMs;
    this.#contextValues = values;
  }

  get service() {
    return this.method.parent;
  }

  readonly timeoutMs = (): number => timeLeftMs(this.#deadlineAt);

  get requestHeader(): Headers {
    this.#requestHeader ??= new Headers(this.#headerSource);
    return this.#requestHeader;
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers();
    return this.#responseHeader;
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new Headers();
    return this.#responseTrailer;
  }

  /** The response headers if the handler touched them. */
  get writtenHeader(): Headers | undefined {
    return this.#responseHeader;
  }

  /** The trailers if the handler touched them. */
  get writtenTrailer(): Headers | undefined {
    return this.#responseTrailer;
  }

  get values(): ContextValues {
    this.#contextValues ??= createContextValues();
    return this.#contextValues;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  /** Ends the call's signal: at its end, at its deadline, or when the caller is gone. The first reason stays. */
  abort(reason?: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}
