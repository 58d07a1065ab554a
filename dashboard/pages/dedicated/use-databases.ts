import type { DedicatedDatabase } from '../../api/types.ts'
import { type ApiFailure, query } from '../../api/client.ts'
import { useData } from '../../parts/use-data.ts'
import type { Place } from '../../router.ts'

const POLL_MS = 3_000

/** Path of dedicated databases in the REST API. */
export const DATABASES = '/v1/databases'

interface DatabasesData {
  readonly databases: readonly DedicatedDatabase[]
  readonly nextCursor: string | null
}

export interface DatabasesState {
  /** Databases of the namespace; undefined before the first answer. */
  readonly databases: readonly DedicatedDatabase[] | undefined
  /** Whether the list is longer than one page. */
  readonly isCut: boolean
  readonly failure: ApiFailure | undefined
  readonly reload: () => void
}

/**
 * Reads the dedicated databases of a namespace, again and again. The list has no credentials: a read of one database returns its connection and is
 * recorded in the audit log, so no page polls that.
 */
export function useDatabases({ organization, namespace }: Place): DatabasesState {
  const path = `${DATABASES}${query({ organization, namespace, limit: '200' })}`
  const { data, failure, reload } = useData<DatabasesData>(path, { everyMs: POLL_MS })
  return { databases: data?.databases, isCut: data !== undefined && data.nextCursor !== null, failure, reload }
}
