import { realtimeUrl, serverUrl } from '../../api/settings.ts';
import { CopyFigure } from '../../components/copy-figure.tsx';
import { Section } from '../../components/page.tsx';

/** First calls for an application, each to copy. */
function readSnippets(id: string) {
  const connect = `import { Latchkey } from '@latchkey/client';

const latchkey = new Latchkey({ url: '${serverUrl}', key: process.env.LATCHKEY_KEY });`;
  return [
    [
      'curl',
      `curl -H "Authorization: Bearer $LATCHKEY_KEY" \\\n  "${serverUrl}/api/v1/panel/get-application-settings?applicationId=${id}"`,
    ],
    ['Client', `${connect}\nconsole.log(await latchkey.applications.settings('${id}'));`],
    [
      'Listener',
      `import { listen } from '@latchkey/client';

// LATCHKEY_SOCKET_KEY: the socket key of ${id}
for await (const event of listen({ url: '${realtimeUrl ?? `${serverUrl.replace('http', 'ws')}/api/v1/realtime`}', socketKey: process.env.LATCHKEY_SOCKET_KEY })) {
  console.log(event.type, event.data);
}`,
    ],
  ] as const;
}

export function Snippets({ applicationId }: { readonly applicationId: string }) {
  return (
    <Section title="Use it" description="LATCHKEY_KEY is an API key that may read applications.">
      {readSnippets(applicationId).map(([name, code]) => (
        <CopyFigure key={name} name={name} text={code} />
      ))}
    </Section>
  );
}
