import { createHash } from 'node:crypto'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const SUFFIX_LENGTH = 10
const STEM_LENGTH = 12

/** Suffix of ten base32 characters that identifies a database's instance. Derived from the uid alone, so it never changes. */
export function tenantSuffix(uid: string): string {
  const digest = createHash('sha256').update(uid).digest()
  return Array.from(digest.subarray(0, SUFFIX_LENGTH), (byte) => BASE32[byte & 31]).join('')
}

/** Name of database and user: at most twelve letters and digits of the identifier, starting with a letter, then the suffix. */
export function tenantName(identifier: string, uid: string): string {
  const stem = identifier.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  const lettered = /^[a-z]/.test(stem) ? stem : `d${stem}`
  return lettered.slice(0, STEM_LENGTH) + tenantSuffix(uid)
}

/** Suffix of a name that {@link tenantName} may have made, otherwise undefined: the sweeper handles no other names. */
export function suffixOf(name: string): string | undefined {
  return /^[a-z][a-z0-9]{0,11}([a-z2-7]{10})$/.exec(name)?.[1]
}
