import { readFile } from 'node:fs/promises'
import { type IssuerKey, IssuerKeyFile } from '../apiserver/auth/issuer.ts'
import { MooringError } from '../shared/errors.ts'
import { writeFileAtomic } from './atomic-file.ts'
import type { DataDir } from './data-dir.ts'

/**
 * Reads `issuer.json`. Needs no lock, so a token can be made while Mooring runs.
 * @returns undefined when Mooring has never been started on this directory
 * @throws MooringError `issuer_unreadable`
 */
export async function readIssuer(dir: DataDir): Promise<IssuerKey | undefined> {
  try {
    return IssuerKeyFile.parse(JSON.parse(await readFile(dir.issuer, 'utf8')))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    // The cause may quote the file, and the file is a key: it is not kept.
    throw new MooringError('issuer_unreadable', `${dir.issuer} cannot be read as an issuer's key`)
  }
}

/** Writes `issuer.json`, for its owner alone. */
export async function writeIssuer(dir: DataDir, content: IssuerKey): Promise<void> {
  await writeFileAtomic(dir.issuer, `${JSON.stringify(content, undefined, 2)}\n`, 0o600)
}
