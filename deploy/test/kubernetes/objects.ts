/** A rendered object of Kubernetes. `schema.ts` checks which fields it has. */
// biome-ignore lint/suspicious/noExplicitAny: the checks read any field of any kind.
export type KubeObject = any;

export function nameOf(object: KubeObject): string {
  return `${object.kind} ${object.metadata?.name}`;
}

export function ofKind(objects: readonly KubeObject[], kind: string): KubeObject[] {
  return objects.filter((object) => object.kind === kind);
}

export function find(objects: readonly KubeObject[], kind: string, name: string): KubeObject | undefined {
  return objects.find((object) => object.kind === kind && object.metadata.name === name);
}

/** Deployments, Jobs and Pods. */
export function workloads(objects: readonly KubeObject[]): KubeObject[] {
  return objects.filter((object) => object.spec && podOf(object).containers !== undefined);
}

export function podOf(workload: KubeObject): KubeObject {
  return workload.spec.template?.spec ?? workload.spec;
}

export function containersOf(workload: KubeObject): KubeObject[] {
  return [...(podOf(workload).initContainers ?? []), ...podOf(workload).containers];
}

/** Labels of a workload's pods. */
export function labelsOf(workload: KubeObject): Record<string, string> {
  return (workload.spec.template ?? workload).metadata?.labels ?? {};
}

type Selector = KubeObject;

/** True if a selector picks what has these labels; an empty one picks all. */
export function selects(selector: Selector, labels: Record<string, string>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }: Selector) => {
      const value = labels[key];
      if (operator === 'In') return value !== undefined && values.includes(value);
      if (operator === 'NotIn') return value === undefined || !values.includes(value);
      return (value !== undefined) === (operator === 'Exists');
    })
  );
}

/** The workloads whose pods a Service sends to. */
export function backendsOf(service: KubeObject, objects: readonly KubeObject[]): KubeObject[] {
  return workloads(objects).filter((workload) => selects({ matchLabels: service.spec.selector }, labelsOf(workload)));
}

/**
 * The number of a port that a Service or a probe gives by number or by its name in the container.
 */
export function portNumber(workload: KubeObject, port: number | string): number | undefined {
  const ports = containersOf(workload).flatMap((container) => container.ports ?? []);
  return ports.find((each) => each.name === port || each.containerPort === port)?.containerPort;
}
