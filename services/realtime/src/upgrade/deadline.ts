import { commonErrors } from '@latchkey/kit/errors';

/**
 * What a promise settles to. Throws `dependency_unavailable` where it does not in time.
 *
 * @param deadline as `performance.now()` counts
 */
export async function beforeDeadline<T>(deadline: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(commonErrors.dependency_unavailable()), deadline - performance.now());
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
