import { longNumber } from '../../format.ts'
import { Card, Facts, Failure, Loading } from '../../parts/basics.tsx'
import { useData } from '../../parts/use-data.ts'

const POLL_MS = 60_000

interface UsageData {
  readonly usage: readonly { readonly item: string; readonly unit: string; readonly quantity: string }[]
}

/** Use of billable items by a database since the begin of the calendar month (UTC). */
export function UsageCard({ path }: { path: string }) {
  const { data, failure } = useData<UsageData>(`${path}/usage`, { everyMs: POLL_MS })
  return (
    <Card title="Usage this month">
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      {data?.usage.length === 0 && <p class="sub">None yet.</p>}
      {data && data.usage.length > 0 && (
        <Facts
          rows={data.usage.map(({ item, unit, quantity }) => [
            <span class="break">{item}</span>,
            `${longNumber(Number(quantity))} ${unit === 'hour' ? 'hours' : 'GiB-hours'}`,
          ])}
        />
      )}
    </Card>
  )
}
