import type { Certificate, CertificateEvent } from '../../api/types.ts'
import { Card, Facts, Pill, Time, type Tone } from '../../parts/basics.tsx'
import { useData } from '../../parts/use-data.ts'

const TONES: Readonly<Record<Certificate['status'], Tone>> = {
  pending: 'plain',
  obtaining: 'warn',
  valid: 'good',
  expired: 'bad',
  failed: 'bad',
}
const EVENT_TONES: Readonly<Record<CertificateEvent['event'], Tone>> = { obtained: 'good', failed: 'bad', expired: 'bad' }
const POLL_MS = 30_000

interface CertificateCardProps {
  readonly certificate: Certificate
  /** Path of the tunnel in the REST API. */
  readonly path: string
}

/** State of a tunnel's certificate, and its last events. */
export function CertificateCard({ certificate, path }: CertificateCardProps) {
  const { status, domain, issuer, obtainedAt, expiresAt, lastError, nextAttemptAt } = certificate
  const { data } = useData<{ history: readonly CertificateEvent[] }>(`${path}/certificate`, { everyMs: POLL_MS })
  const time = (at: string | null) => (at === null ? '–' : <Time at={at} />)
  return (
    <Card title="Certificate" actions={<Pill tone={TONES[status]}>{status}</Pill>}>
      <Facts
        rows={[
          ['Domain', <span class="mono break">{domain ?? '–'}</span>],
          ['Issuer', issuer ?? '–'],
          ['Obtained', time(obtainedAt)],
          ['Expires', time(expiresAt)],
          ...(nextAttemptAt === null ? [] : [['Next attempt', time(nextAttemptAt)] as const]),
        ]}
      />
      {lastError !== null && <p class="note bad">{lastError}</p>}
      {data && data.history.length > 0 && <History history={data.history} />}
    </Card>
  )
}

const History = ({ history }: { history: readonly CertificateEvent[] }) => (
  <details>
    <summary>History</summary>
    <Facts rows={history.map((event) => [<Time at={event.at} />, <Event event={event} />] as const)} />
  </details>
)

const Event = ({ event: { event, issuer, error, attempts } }: { event: CertificateEvent }) => (
  <>
    <Pill tone={EVENT_TONES[event]}>{attempts > 1 ? `${event} ${attempts} times` : event}</Pill>{' '}
    <span class="break">{error ?? issuer}</span>
  </>
)
