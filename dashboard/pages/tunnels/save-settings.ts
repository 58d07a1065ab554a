import { type ApiResult, ApiFailure, call } from '../../api/client.ts'
import type { Tunnel } from '../../api/types.ts'
import { changesOf, draftOf } from './settings-draft.ts'

/** Tunnel as the form was filled from it, with its version. */
export interface Start {
  readonly tunnel: Tunnel
  readonly etag: string | null
}

type TunnelData = { readonly tunnel: Tunnel }

/**
 * Saves changes of settings unless another user has changed the settings since `start`. The version (ETag) also changes with the state of the tunnel,
 * such as its certificate. After such a conflict the save is repeated once with the new version.
 * @throws ApiFailure `conflict` when the settings differ from those of `start`, or the version has changed again
 */
export async function saveSettings(path: string, start: Start, changes: object): Promise<Start> {
  try {
    return startOf(await patch(path, start.etag, changes))
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'conflict') throw error
    const now = startOf(await call<TunnelData>('GET', path))
    if (changesOf(now.tunnel, draftOf(start.tunnel))) throw error
    return startOf(await patch(path, now.etag, changes))
  }
}

const patch = (path: string, etag: string | null, body: object): Promise<ApiResult<TunnelData>> =>
  call('PATCH', path, { body, headers: etag === null ? undefined : { 'If-Match': etag } })

const startOf = ({ data, etag }: ApiResult<TunnelData>): Start => ({ tunnel: data.tunnel, etag })
