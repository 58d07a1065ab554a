import type { Secret } from '../../crds/core.ts'
import { annotations } from '../../crds/names.ts'
import type { Kind, Resource } from '../../crds/kind.ts'

/** Part of a status that names the password which the engine has. */
interface PasswordInForce {
  readonly passwordVersion?: number | undefined
  readonly passwordId?: string | undefined
}

/**
 * Whether a status names the password of a Secret as the one in force: the operator writes a new password into the Secret, then into the engine,
 * then its version and id into the status. A Secret and a status from before there were ids have none.
 */
export function isInForce({ metadata: { annotations: notes = {} } }: Secret, status: PasswordInForce | undefined): boolean {
  return (
    notes[annotations.passwordVersion] === String(status?.passwordVersion) && notes[annotations.passwordId] === status?.passwordId
  )
}

export interface CredentialReads<R, C> {
  /** Reads the credentials; undefined while the status does not name their password as the one in force. */
  readonly read: (now: R) => Promise<C | undefined>
  /** Waits for a later state of the object; undefined when the time of the request is used up. */
  readonly next: (now: R, isLater: (seen: R) => boolean) => Promise<R | undefined>
}

/**
 * Reads the credentials of an object until their password is in force. Returns them with the state of the object that names it; undefined when
 * the time of the request is used up.
 * @throws errors of `read` and `next`
 */
export async function credentialsInForce<R extends Resource<Kind>, C>(
  object: R,
  { read, next }: CredentialReads<R, C>,
): Promise<{ readonly object: R; readonly credentials: C } | undefined> {
  let now: R | undefined = object
  while (now) {
    const credentials = await read(now)
    if (credentials) return { object: now, credentials }
    // The status is written after the Secret and the engine, so a change of the object follows. One during the read counts as well.
    const { resourceVersion } = now.metadata
    now = await next(now, ({ metadata }) => metadata.resourceVersion !== resourceVersion)
  }
  return undefined
}
