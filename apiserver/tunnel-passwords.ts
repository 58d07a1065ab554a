import { createHash, createHmac, randomInt } from 'node:crypto'
import { z } from 'zod'
import { annotations } from '../crds/names.ts'
import type { TunnelPassword } from '../crds/tunnel-password.ts'
import { createdAtOf } from './created-at.ts'
import { withMilliseconds } from './rfc3339.ts'

/** Contract, "Limits". */
export const LIFE_MS = 4 * 3_600_000
/** Of one tunnel that are not expired (surface, section 2). */
export const LIVE_MAX = 10

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

export function passwordView({ metadata, spec }: TunnelPassword): z.output<typeof PasswordView> {
  return {
    id: metadata.uid,
    expiresAt: withMilliseconds(spec.expiresAt),
    createdAt: createdAtOf(metadata),
    createdBy: metadata.annotations?.[annotations.createdBy] ?? null,
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
