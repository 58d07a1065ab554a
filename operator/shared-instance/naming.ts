import { createHash } from 'node:crypto'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const SUFFIX_LENGTH = 10
const STEM_LENGTH = 12

/** The ten base32 characters by which a database says whose it is: from the uid alone, so they never change. */
export function tenantSuffix(uid: string): string {
  const digest = createHash('sha256').update(uid).digest()
  return Array.from(digest.subarray(0, SUFFIX_LENGTH), (byte) => BASE32[byte & 31]).join('')
}

/** Name of database and user: at most twelve letters and digits of the identifier, then the suffix; a letter first (surface, section 3). */
export function tenantName(identifier: string, uid: string): string {
  const stem = identifier.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  const lettered = /^[a-z]/.test(stem) ? stem : `d${stem}`
  return lettered.slice(0, STEM_LENGTH) + tenantSuffix(uid)
}

/** The suffix of a name that {@link tenantName} may have made, else undefined: the sweeper touches nothing else. */
export function suffixOf(name: string): string | undefined {
  return /^[a-z][a-z0-9]{0,11}([a-z2-7]{10})$/.exec(name)?.[1]
}
