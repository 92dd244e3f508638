/** Merged metrics of several processes. */
export interface Scrape {
  /** The type of each metric, those without a value included. */
  readonly types: ReadonlyMap<string, string>;
  readonly samples: ReadonlyArray<{
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }>;
  /** The sum of a metric's values that have these labels; undefined without any. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

const SAMPLE = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)$/gim;
const LABEL = /([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"/gi;

export async function scrape(urls: readonly string[], token: string): Promise<Scrape> {
  const text = (await Promise.all(urls.map((url) => read(url, token)))).join('\n');
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]));
  const samples = [...text.matchAll(SAMPLE)].map(([, name = '', labels = '', value]) => {
    const pairs = [...labels.matchAll(LABEL)].map(([, label, labelText]) => [label, labelText]);
    return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
  });
  return {
    types,
    samples,
    sum(name, labels = {}) {
      const isWanted = (sample: (typeof samples)[number]) =>
        Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted);
      const found = samples.filter((sample) => sample.name === name && isWanted(sample));
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

async function read(url: string, token: string): Promise<string> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.text();
}
