import { createHash, createHmac, randomInt } from 'node:crypto'
import { z } from 'zod'
import { annotations } from '../../crds/names.ts'
import { livePasswords, passwordsOf } from '../../shared/live-passwords.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { endOfPassword, type TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { createdAtOf } from '../resources/created-at.ts'

const PREFIX = 'mt_'
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32

export const PasswordView = z
  .object({
    id: z.uuid(),
    password: z.string().optional().describe('Shown once, in the answer of its creation.'),
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

/** How the passwords of a tunnel are found: those that have not ended, and of these the ones that the edge accepts. Oldest first. */
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

/** `mt_` and 32 base62 characters, some 190 bits. */
export function randomTunnelPassword(): string {
  return PREFIX + Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** The same for the same salt, for whoever has the installation's secret: a repeated request is answered with it again. */
export function deriveTunnelPassword(secret: Uint8Array, salt: string): string {
  const bytes = createHmac('sha512', secret).update(`tunnel-password:${salt}`).digest()
  // 256 is no multiple of 62: the first characters come a little more often, which leaves 189 of the 190 bits.
  return PREFIX + Array.from(bytes.subarray(0, LENGTH), (byte) => BASE62[byte % BASE62.length]).join('')
}

export const sha256Of = (password: string): string => createHash('sha256').update(password).digest('hex')
