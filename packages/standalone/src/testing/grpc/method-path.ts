import type { DescMethod } from '@bufbuild/protobuf';

/** Path of a method in a URL. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}
