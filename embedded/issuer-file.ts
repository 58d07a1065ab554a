import { readFile } from 'node:fs/promises'
import { type IssuerKey, IssuerKeyFile } from '../apiserver/auth/issuer.ts'
import { MooringError } from '../shared/errors.ts'
import { writeFileAtomic } from './atomic-file.ts'
import type { DataDir } from './data-dir.ts'

/**
 * Reads `issuer.json`. Needs no lock, so that a token can be signed while Mooring runs.
 * @returns undefined when Mooring has never been started on this directory
 * @throws MooringError `issuer_unreadable`
 */
export async function readIssuer(dir: DataDir): Promise<IssuerKey | undefined> {
  try {
    return IssuerKeyFile.parse(JSON.parse(await readFile(dir.issuer, 'utf8')))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    // The cause is dropped: it may quote the file, which has a private key.
    throw new MooringError('issuer_unreadable', `${dir.issuer} is not a valid issuer key`)
  }
}

/** Writes `issuer.json`, readable by its owner alone. */
export async function writeIssuer(dir: DataDir, content: IssuerKey): Promise<void> {
  await writeFileAtomic(dir.issuer, `${JSON.stringify(content, undefined, 2)}\n`, 0o600)
}
