import type { DescMethodUnary } from '@bufbuild/protobuf';
import { type ContextValues, createContextValues, type HandlerContext } from '@connectrpc/connect';
import { type HeaderSource, timeLeftMs } from '../call.ts';

/**
 * A handler context that creates headers, signal and values on first use. Connect's own creates
 * five AbortControllers and three Headers a call, which costs more than most handlers.
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

  /** @param timeoutMs time until the deadline, in milliseconds */
  constructor(method: DescMethodUnary, url: string, header: HeaderSource, timeoutMs: number) {
    this.method = method;
    this.url = url;
    this.#headerSource = header;
    this.#deadlineAt = performance.now() + timeoutMs;
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

  get setHeaders(): Headers | undefined {
    return this.#responseHeader;
  }

  get responseTrailer(): never {
    throw new Error('Responses have no trailers');
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

  /** Aborts the signal: at the end of the call, at its deadline, or when the caller is gone. */
  abort(reason?: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}
