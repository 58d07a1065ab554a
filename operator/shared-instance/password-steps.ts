import { requiresTls, type ServerTls } from '../../crds/formats/server-tls.ts'
import type { Credentials } from './kept-secret.ts'

/** Steps by which a Secret and the engine get the desired password, or the Secret the present address of its server. */
export type PasswordStep =
  /** Removes the password from the status until the next one is in force, which covers a crash between Secret and engine. */
  | 'doubt-password'
  /** Creates the Secret. */
  | 'secret'
  /** Writes a new password into the Secret. */
  | 'renew-secret'
  /** Writes the present address into the Secret. */
  | 'move-secret'
  /** Sets the password of the Secret in the engine. */
  | 'password'

/** Observed state of a Secret (kept-secret.ts); undefined when there is none. */
export type ObservedSecret =
  Pick<Credentials, 'passwordVersion' | 'passwordId' | 'host' | 'port' | 'usesTls' | 'tidy'> | 'damaged' | 'foreign' | undefined

/** Observed state of the password. */
export interface ObservedPassword {
  /** Desired version. */
  readonly desired: number
  /** Version and id of the password in force, as the status has them. */
  readonly inForce: { readonly version: number | undefined; readonly id: string | undefined }
  readonly secret: ObservedSecret
  /** Whether the tenant has set another password than the Secret has. */
  readonly isChanged: boolean
}

/** Address of a server that callers reach. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly tls?: ServerTls | undefined
}

/** Plans the steps for the password of a claimed database. Pure. */
export function passwordSteps(
  { desired, inForce, secret, isChanged }: ObservedPassword,
  at: ServerAddress,
): readonly PasswordStep[] {
  const isVersionInForce = inForce.version === desired
  const draw = drawing(secret, desired)
  if (draw) return isVersionInForce ? ['doubt-password', draw, 'password'] : [draw, 'password']
  if (!isVersionInForce || !isNamed(secret, inForce) || isChanged) return ['password']
  return isAsWritten(secret, at) ? [] : ['move-secret']
}

/** Step for a deleted or damaged Secret: it is created with a new password, as the old one is stored nowhere else. */
function drawing(secret: ObservedSecret, desired: number): 'secret' | 'renew-secret' | undefined {
  if (typeof secret !== 'object') return secret === undefined ? 'secret' : 'renew-secret'
  return secret.passwordVersion === desired ? undefined : 'renew-secret'
}

/** Whether the status names the password of the Secret. It does not when the Secret was exchanged by hand for another of the same version. */
const isNamed = (secret: ObservedSecret, { id }: ObservedPassword['inForce']): boolean =>
  typeof secret === 'object' && secret.passwordId === id

function isAsWritten(secret: ObservedSecret, at: ServerAddress): boolean {
  if (typeof secret !== 'object' || !secret.tidy) return false
  return secret.host === at.host && secret.port === at.port && secret.usesTls === requiresTls(at)
}
