import type { RequestFilter, RequestRecord } from './port.ts'

/** Whether a record matches the filter of a search. Pure. */
export function matchesFilter(record: RequestRecord, filter: RequestFilter): boolean {
  const { from = -Infinity, to = Infinity, pathPrefix = '', statusClass } = filter
  const same = (['method', 'status', 'sourceIp', 'origin', 'reason'] as const).every(
    (field) => filter[field] === undefined || filter[field] === record[field],
  )
  const inTime = record.at >= from && record.at < to
  const inClass = statusClass === undefined || Math.floor(record.status / 100) === statusClass
  return same && inTime && inClass && record.path.startsWith(pathPrefix)
}
