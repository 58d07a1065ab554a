import { readFile } from 'node:fs/promises'
import { MooringError } from '../../shared/errors.ts'

/** Code of the error about a file of the settings of ACME. */
export const ACME_FILE_UNUSABLE = 'acme_file_unusable'

/**
 * Reads the file of a flag.
 * @throws MooringError with this code; default: `acme_file_unusable`
 */
export async function fileOf(flag: string, path: string, code: string = ACME_FILE_UNUSABLE): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new MooringError(code, `${flag} must be a file that can be read, not ${JSON.stringify(path)}: ${why}.`, { cause })
  }
}
