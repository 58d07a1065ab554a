import { call } from '../../api/client.ts'
import type { Delivery } from '../../api/types.ts'
import { duration } from '../../format.ts'
import { Empty, Failure, Loading, Pill, Time, type Tone } from '../../parts/basics.tsx'
import { useAction, useData } from '../../parts/use-data.ts'

const POLL_MS = 2_000
const TONES: Readonly<Record<Delivery['status'], Tone>> = { pending: 'warn', delivered: 'good', failed: 'bad' }

/** Deliveries of a webhook, newest first. */
export function Deliveries({ path, canEdit }: { path: string; canEdit: boolean }) {
  const { data, failure, reload } = useData<{ deliveries: readonly Delivery[] }>(`${path}?limit=50`, { everyMs: POLL_MS })
  const { isBusy, failure: redeliverFailure, run } = useAction()
  const redeliver = ({ id }: Delivery) =>
    run(async () => {
      await call('POST', `${path}/${encodeURIComponent(id)}/redeliver`)
      reload()
    })
  if (!data) return failure ? <Failure failure={failure} /> : <Loading />
  if (data.deliveries.length === 0) return <Empty icon="clock" title="No deliveries yet" />
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Deliveries">
      <Failure failure={failure ?? redeliverFailure} />
      <table>
        <thead>
          <tr>
            <th scope="col">Last attempt</th>
            <th scope="col">Event</th>
            <th scope="col">State</th>
            <th scope="col">Answer</th>
            {canEdit && <th scope="col">Again</th>}
          </tr>
        </thead>
        <tbody>
          {data.deliveries.map((delivery) => (
            <tr key={delivery.id}>
              <td class="nowrap">{delivery.requestedAt === null ? 'not yet' : <Time at={delivery.requestedAt} />}</td>
              <td>
                {delivery.type}
                <span class="sub mono break">{delivery.eventId}</span>
              </td>
              <td>
                <Pill tone={TONES[delivery.status]}>{delivery.status}</Pill>
                <span class="sub">
                  {delivery.attempt} {delivery.attempt === 1 ? 'attempt' : 'attempts'}
                  {delivery.nextAttemptAt !== null && (
                    <>
                      , next <Time at={delivery.nextAttemptAt} />
                    </>
                  )}
                </span>
              </td>
              <td>
                <Answer delivery={delivery} />
              </td>
              {canEdit && (
                <td>
                  <button type="button" class="button small" disabled={isBusy} onClick={() => redeliver(delivery)}>
                    Redeliver
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Answer = ({ delivery: { responseStatus, durationMs, responseBody, error } }: { delivery: Delivery }) => (
  <>
    {responseStatus !== null && <strong>{responseStatus} </strong>}
    {durationMs !== null && duration(durationMs)}
    {error !== null && <span class="sub break">{error}</span>}
    {responseBody !== null && responseBody !== '' && (
      <details>
        <summary>Body</summary>
        <pre class="wrap answer">{responseBody}</pre>
      </details>
    )}
  </>
)
