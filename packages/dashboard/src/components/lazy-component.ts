import { ConnectionError } from '@latchkey/client';
import { type ComponentType, createElement, type ReactNode, use } from 'react';

/** Code of the error of a component whose script could not be loaded. */
export const NOT_LOADED = 'page_not_loaded';

type Lazy<Props> = ((props: Props) => ReactNode) & { readonly preload: () => Promise<void> };

/**
 * An export of a module that is loaded when it is rendered, or before by `preload`, which tries
 * again after a failure. The router's one reloads the page then, which loses it while the service is
 * away.
 */
export function lazyComponent<Module extends object, Name extends keyof Module>(
  load: () => Promise<Module>,
  name: Name,
  // biome-ignore lint/suspicious/noExplicitAny: another type would resolve the one of the page, which depends on all routes.
): Module[Name] extends (props: infer Props) => any ? Lazy<Props> : never {
  let Loaded: ComponentType<object> | undefined;
  let loading: Promise<void> | undefined;
  let hasFailed = false;
  const start = async () => {
    hasFailed = false;
    try {
      Loaded = (await load())[name] as ComponentType<object>;
    } catch (cause) {
      hasFailed = true;
      throw new ConnectionError('A part of this page could not be loaded.', { code: NOT_LOADED, cause });
    }
  };
  const preload = (): Promise<void> => {
    if (loading === undefined || hasFailed) loading = start();
    return loading;
  };
  const Component = (props: object) => {
    // A failure stays until the next preload: rendering alone would try again without an end.
    if (!Loaded) use(loading ?? preload());
    return Loaded ? createElement(Loaded, props) : null;
  };
  return Object.assign(Component, { preload }) as never;
}
