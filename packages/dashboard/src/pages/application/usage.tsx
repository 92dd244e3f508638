import { useQuery } from '@tanstack/react-query';
import { liveClientsQuery, usageQuery } from '../../api/queries.ts';
import { DailyCharts } from '../../components/daily-chart.tsx';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/states.tsx';
import { Line } from '../../components/usage-meter.tsx';

export function Usage({ applicationId }: { readonly applicationId: string }) {
  const query = useQuery(usageQuery(applicationId));
  const { data: clients } = useQuery(liveClientsQuery(applicationId));
  return (
    <Section title="Usage" description="By day (UTC). New activity appears within 15 seconds.">
      <Line name="Live clients now" value={clients?.toLocaleString('en') ?? 'Not known'} />
      <QueryView query={query}>
        {(days) => (
          <DailyCharts
            caption="Usage by day"
            days={days}
            charts={{ Downloads: 'downloads', Events: 'events' }}
            others={{ Uploads: 'uploads', 'Most live clients': 'clientsMax' }}
          />
        )}
      </QueryView>
    </Section>
  );
}
