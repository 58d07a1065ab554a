import { readFile } from 'node:fs/promises'
import type { JWK } from 'jose'
import { z } from 'zod'
import { MooringError } from '../crds/errors.ts'
import { writeFileAtomic } from './atomic-file.ts'
import type { DataDir } from './data-dir.ts'

/** What signs the tokens of embedded mode. */
export interface IssuerFile {
  /** The claim `iss`. It stays, whatever ports a later start listens on: tokens outlive a restart. */
  readonly issuer: string
  /** Private Ed25519 key. A secret. */
  readonly privateKey: JWK
}

const Content = z.object({
  issuer: z.url(),
  privateKey: z.looseObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() }),
})

/**
 * Reads `issuer.json`. Needs no lock, so a token can be made while Mooring runs.
 * @returns undefined when Mooring has never been started on this directory
 * @throws MooringError `issuer_unreadable`
 */
export async function readIssuer(dir: DataDir): Promise<IssuerFile | undefined> {
  try {
    return Content.parse(JSON.parse(await readFile(dir.issuer, 'utf8')))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    // The cause may quote the file, and the file is a key: it is not kept.
    throw new MooringError('issuer_unreadable', `${dir.issuer} cannot be read as an issuer's key`)
  }
}

/** Writes `issuer.json`, for its owner alone. */
export async function writeIssuer(dir: DataDir, content: IssuerFile): Promise<void> {
  await writeFileAtomic(dir.issuer, `${JSON.stringify(content, undefined, 2)}\n`, 0o600)
}
