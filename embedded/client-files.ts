import { rm } from 'node:fs/promises'
import type { DataDir } from './data-dir.ts'
import { writeFileAtomic } from './atomic-file.ts'

export interface ClientFiles {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** Undefined: none is kept, and one of an earlier start is removed. */
  readonly token: string | undefined
  /** PEM of the local CA. */
  readonly ca: string
}

/**
 * Writes what a client on this machine needs: `ca.pem`, `token` and `env` (surface, section 1). To be called at each start, and
 * again with a fresh token before the old one expires.
 */
export async function writeClientFiles(dir: DataDir, { sharedUrl, dedicatedUrl, token, ca }: ClientFiles): Promise<void> {
  await writeFileAtomic(dir.ca, ca, 0o644)
  if (token === undefined) await rm(dir.token, { force: true })
  else await writeFileAtomic(dir.token, `${token}\n`, 0o600)
  const variables = {
    MOORING_URL: sharedUrl,
    MOORING_DEDICATED_URL: dedicatedUrl,
    ...(token !== undefined && { MOORING_TOKEN: token }),
    MOORING_CA: dir.ca,
  }
  await writeFileAtomic(dir.env, shellExports(variables), 0o600)
}

/** Lines for a POSIX shell to source; every value arrives as it is, whatever characters it has. */
export function shellExports(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
    .join('')
}

/** One word of a POSIX shell (IEEE Std 1003.1, section 2.2.2): nothing is special in single quotes but the quote itself. */
export function shellQuote(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`
}
