import { MooringError } from '../../shared/errors.ts'

/** Maximum length of a key: with the prefix of a bucket before it, S3 allows 1024 bytes. */
const KEY_CHARACTERS = 512
/** A part is the name of a file, which has at most 255 bytes (NAME_MAX, limits.h(0P)). */
const PART = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,255}$/

/** Code of a key or prefix that breaks the rules of `port.ts`: an error in the caller's program, which a retry does not correct. */
export const INVALID_KEY = 'repository_invalid_key'

const RULE = `must be at most ${KEY_CHARACTERS} characters: parts of A-Z, a-z, 0-9, ".", "_" and "-" joined by "/", none of them "." or ".."`

export const isKeyPart = (text: string): boolean => PART.test(text)

const isKey = (text: string): boolean => text.length <= KEY_CHARACTERS && text.split('/').every(isKeyPart)

/** Returns the parts of a key, at least one. @throws MooringError `repository_invalid_key` */
export function partsOfKey(key: string): readonly [string, ...string[]] {
  const [first, ...more] = key.split('/')
  if (first === undefined || !isKey(key)) throw new MooringError(INVALID_KEY, `The key ${JSON.stringify(key)} ${RULE}.`)
  return [first, ...more]
}

/** Returns the parts of a prefix: none for the empty prefix, with which all keys begin. @throws MooringError `repository_invalid_key` */
export function partsOfPrefix(prefix: string): readonly string[] {
  if (prefix === '') return []
  const key = prefix.slice(0, -1)
  if (!prefix.endsWith('/') || !isKey(key))
    throw new MooringError(
      INVALID_KEY,
      `The prefix ${JSON.stringify(prefix)} must be empty or end with "/", and what is before ${RULE}.`,
    )
  return key.split('/')
}
