import { rm } from 'node:fs/promises'
import type { DataDir } from './data-dir.ts'
import { writeFileAtomic } from './atomic-file.ts'

export interface ClientFiles {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** Token to write; undefined removes the token of an earlier start. */
  readonly token: string | undefined
  /** PEM of the local CA. */
  readonly ca: string
}

/**
 * Writes the files that a client on this machine needs: `ca.pem`, `token` and `env` (docs/install.md). Call it at each start, and
 * again with a new token before the old one expires.
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

/** Returns lines for a POSIX shell to source. Values may have any characters. */
export function shellExports(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
    .join('')
}

/**
 * Quotes a value as one word of a POSIX shell (IEEE Std 1003.1, section 2.2.2): only the quote itself is special in single
 * quotes.
 */
export function shellQuote(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`
}
