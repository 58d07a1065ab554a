import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HOST_KEY_TYPES } from '../shared/edge-objects.ts'
import { MooringError } from '../shared/errors.ts'
import { parseHostKey } from './ssh/host-keys.ts'

/**
 * Reads the endpoint's host keys from its mounted Secret, in OpenSSH's format.
 * @throws MooringError `files_unreadable`, `invalid_host_key`
 */
export async function readHostKeys(directory: string): Promise<readonly string[]> {
  try {
    const keys = await Promise.all(HOST_KEY_TYPES.map((type) => readFile(join(directory, type), 'utf8')))
    for (const key of keys) parseHostKey(key)
    return keys
  } catch (cause) {
    if (cause instanceof MooringError) throw cause
    throw new MooringError('files_unreadable', `the host keys in ${directory} are not readable`, { cause })
  }
}
