import { useState } from 'preact/hooks'
import type { Access } from '../access.ts'
import { call, query } from '../api/client.ts'
import type { AuditEntry } from '../api/types.ts'
import { Empty, Failure, Loading, Time } from '../parts/basics.tsx'
import { useAction, useData } from '../parts/use-data.ts'
import { apiPath } from '../router.ts'

const POLL_MS = 5_000

interface AuditData {
  readonly entries: readonly AuditEntry[]
  readonly nextCursor: string | null
}

export const AuditPage = ({ access }: { access: Access }) => (
  <>
    <div class="page-head">
      <h1>Audit log</h1>
    </div>
    <AuditTable access={access} />
  </>
)

/** Audit entries of the namespace, or of one resource. */
export function AuditTable({ access, id }: { access: Access; id?: string }) {
  const path = (cursor?: string) => `${apiPath(access, 'audit')}${query({ id, cursor, limit: '50' })}`
  const { data, failure } = useData<AuditData>(path(), { everyMs: POLL_MS })
  const [older, setOlder] = useState<AuditData>()
  const { isBusy, failure: moreFailure, run } = useAction()
  if (!data) return failure ? <Failure failure={failure} /> : <Loading />
  // New entries push others off the first page; those that were read remain.
  const read = [...data.entries, ...(older?.entries ?? [])]
  const entries = [...new Map(read.map((entry) => [entry.id, entry])).values()]
  const next = older ? older.nextCursor : data.nextCursor
  const more = () =>
    run(async () => {
      const page = await call<AuditData>('GET', path(next ?? undefined))
      setOlder({ entries: [...(older?.entries ?? data.entries), ...page.data.entries], nextCursor: page.data.nextCursor })
    })
  if (entries.length === 0) return <Empty icon="list" title="No entries" />
  return (
    <div class="card flush">
      <div class="scroll" tabIndex={0} role="region" aria-label="Audit entries">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Who</th>
              <th scope="col">Action</th>
              <th scope="col">Resource</th>
              <th scope="col">Changes</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </tbody>
        </table>
      </div>
      <Failure failure={moreFailure} />
      {next !== null && (
        <button type="button" class="button more" disabled={isBusy} onClick={more}>
          Older entries
        </button>
      )}
    </div>
  )
}

const Entry = ({ entry: { timestamp, actor, via, action, resource, changes, sourceIp } }: { entry: AuditEntry }) => (
  <tr>
    <td class="nowrap">
      <Time at={timestamp} />
    </td>
    <td>
      <span class="break">{actor?.name ?? 'unknown'}</span>
      <span class="sub">
        {via}
        {sourceIp === null ? '' : `, ${sourceIp}`}
      </span>
    </td>
    <td>{action}</td>
    <td>
      <span class="break">{resource.name}</span>
      <span class="sub">{resource.kind}</span>
    </td>
    <td>
      {changes.length > 0 && (
        <details>
          <summary>{changes.length === 1 ? '1 field' : `${changes.length} fields`}</summary>
          <ul class="changes">
            {changes.map(({ path, from, to }) => (
              <li key={path}>
                <code>{path}</code> {shown(from)} → {shown(to)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </td>
  </tr>
)

const shown = (value: unknown): string => (value === null ? 'nothing' : JSON.stringify(value))
