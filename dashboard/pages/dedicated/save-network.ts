import { type ApiResult, ApiFailure, call } from '../../api/client.ts'
import type { DedicatedDatabase } from '../../api/types.ts'
import { isSameRules } from './rules-draft.ts'

/** Network settings of a database in the API. */
export type NetworkSettings = Pick<DedicatedDatabase, 'firewallRules' | 'privateNetwork'>

/** Maximum number of saves: the version (ETag) also changes with the state of the database. */
const TRIES = 3

/**
 * Saves changes of network settings unless another user has changed the settings since `start`. Resolves with the settings after the save.
 * @throws ApiFailure `conflict` when the settings differ from those of `start`, or the version has changed at each try
 */
export async function saveNetwork(
  path: string,
  start: NetworkSettings,
  changes: Partial<NetworkSettings>,
): Promise<NetworkSettings> {
  for (let tries = 1; ; tries++) {
    const { data, etag } = await patch(path, {})
    if (!isSameNetwork(data.database, start)) throw changedMeanwhile()
    try {
      return (await patch(path, changes, etag)).data.database
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.code !== 'conflict' || tries === TRIES) throw error
    }
  }
}

/** Patches the database. An empty patch changes nothing: it reads the version without the connection, whose reads are recorded. */
const patch = (path: string, body: object, etag: string | null = null): Promise<ApiResult<{ database: DedicatedDatabase }>> =>
  call('PATCH', path, { body, headers: etag === null ? undefined : { 'If-Match': etag } })

/** Returns whether two databases have the same network settings. */
export const isSameNetwork = (one: NetworkSettings, other: NetworkSettings): boolean =>
  one.privateNetwork === other.privateNetwork && isSameRules(one.firewallRules, other.firewallRules)

const changedMeanwhile = () => new ApiFailure('Another user has changed the network settings.', { status: 409, code: 'conflict' })
