import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MooringError } from '../crds/errors.ts'
import { parseHostKey } from './ssh/host-keys.ts'

/** As the operator keeps them (operator/endpoint/host-keys.ts). */
const TYPES = ['ed25519', 'ecdsa', 'rsa'] as const

/** The endpoint's host keys from its mounted Secret, in OpenSSH's format. @throws MooringError `files_unreadable`, `invalid_host_key` */
export async function readHostKeys(directory: string): Promise<readonly string[]> {
  try {
    const keys = await Promise.all(TYPES.map((type) => readFile(join(directory, type), 'utf8')))
    for (const key of keys) parseHostKey(key)
    return keys
  } catch (cause) {
    if (cause instanceof MooringError) throw cause
    throw new MooringError('files_unreadable', `the host keys in ${directory} cannot be read`, { cause })
  }
}
