import type { Secret } from '../../crds/core.ts'
import { annotations } from '../../crds/names.ts'

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
