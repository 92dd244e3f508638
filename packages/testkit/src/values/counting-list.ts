/** A list that counts how often its elements are read. */
export function countingList<T>(length: number, item: T) {
  const counts = { reads: 0 };
  const list = new Proxy(Array<T>(length).fill(item), {
    get: (target, key, receiver) => {
      if (typeof key === 'string' && /^[0-9]+$/.test(key)) counts.reads += 1;
      return Reflect.get(target, key, receiver);
    },
  });
  return { list, counts };
}
