import { onBehalfOf } from '../call-origin.ts';
import { inSpan } from '../tracing/tracer.ts';
import { maskError } from './bound-method.ts';
import type { PlainRoute } from './plain-route.ts';
import { TRACEPARENT_HEADER } from './route.ts';
import { bodiesServed, codeName } from './rpc-metrics.ts';

/**
 * Has the requests of a plain route measured and traced, where that is asked for, and lets what they queue know its request. Only who had to show a
 * credential is believed about the trace that a request is a part of.
 */
export function observeRoute(route: PlainRoute): PlainRoute {
  const name = `${route.method} ${route.path}`;
  const handle: PlainRoute['handle'] = async (req, res, requestId, isService) => {
    const startedAt = performance.now();
    const took = () => (performance.now() - startedAt) / 1_000;
    const given = req.headers[TRACEPARENT_HEADER];
    const traceparent = typeof given === 'string' ? given : undefined;
    const place = route.needsCredential ? { parent: traceparent } : { link: traceparent };
    const attributes = { 'http.request.method': route.method, 'http.route': route.path };
    try {
      await inSpan({ name, kind: 'server', attributes, ...place }, () =>
        onBehalfOf(requestId, () => route.handle(req, res, requestId, isService)),
      );
      bodiesServed.observe(took(), name, res.statusCode < 400 ? 'ok' : String(res.statusCode));
    } catch (err) {
      bodiesServed.observe(took(), name, codeName(maskError(err).error));
      throw err;
    }
  };
  return { ...route, handle };
}
