import { createHash, createHmac, randomInt } from 'node:crypto'
import { z } from 'zod'
import { annotations } from '../../crds/names.ts'
import { livePasswords, passwordsOf } from '../../shared/live-passwords.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { createdAtOf } from '../resources/timestamps.ts'

const PREFIX = 'mt_'
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32

export const PasswordView = z
  .object({
    id: z.uuid(),
    password: z.string().optional().describe('Only in the answer to the creation.'),
    expiresAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
    createdBy: z.string().nullable(),
  })
  .meta({ id: 'TunnelPassword' })

export function passwordView(password: TunnelPassword): z.output<typeof PasswordView> {
  const { metadata } = password
  return {
    id: metadata.uid,
    expiresAt: new Date(endOfPassword(password)).toISOString(),
    createdAt: createdAtOf(metadata),
    createdBy: metadata.annotations?.[annotations.createdBy] ?? null,
  }
}

interface LiveDeps {
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly now: () => Date
}

/** Creates the lookups of a tunnel's passwords, oldest first: all that have not expired, and those of them that the edge accepts. */
export function createPasswordLookup({ tunnelPasswords, now }: LiveDeps) {
  function allOf(tunnel: Tunnel): readonly TunnelPassword[] {
    const { namespace } = tunnel.metadata
    return passwordsOf(tunnel, tunnelPasswords.list(namespace === undefined ? {} : { namespace }))
  }
  return {
    lastingPasswordsOf: (tunnel: Tunnel) => allOf(tunnel).filter((password) => endOfPassword(password) > now().getTime()),
    livePasswordsOf: (tunnel: Tunnel) => livePasswords(allOf(tunnel), endOfPassword, now().getTime()),
  }
}

/** Creates a password: `mt_` and 32 base62 characters, some 190 bits. */
export function randomTunnelPassword(): string {
  return PREFIX + Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** Derives a password from `salt` and the installation's secret, so that a repeated request gets the same password again. */
export function deriveTunnelPassword(secret: Uint8Array, salt: string): string {
  const bytes = createHmac('sha512', secret).update(`tunnel-password:${salt}`).digest()
  // 256 is not a multiple of 62, so the first characters are slightly more frequent: 189 of the 190 bits remain.
  return PREFIX + Array.from(bytes.subarray(0, LENGTH), (byte) => BASE62[byte % BASE62.length]).join('')
}

export const sha256Of = (password: string): string => createHash('sha256').update(password).digest('hex')
