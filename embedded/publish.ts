import type { Logger } from 'pino'
import type { TokenIssuer } from '../apiserver/auth/issuer.ts'
import { type ClientFiles, writeClientFiles } from './client-files.ts'
import type { DataDir } from './data-dir.ts'
import type { Ready, ReadyFile } from './ready-file.ts'

const ADMIN_TOKEN_HOURS = 12
const RENEW_MS = 6 * 3_600_000

export interface PublishDeps {
  readonly dir: DataDir
  readonly issuer: TokenIssuer
  readonly readyFile: ReadyFile
  readonly client: Omit<ClientFiles, 'token'>
  readonly ready: Omit<Ready, 'token'>
  readonly log: Logger
  /** Whether the token is written to the data directory; the ready file has it in any case. */
  readonly isTokenKept: boolean
  /** Default six hours. */
  readonly renewMs?: number
}

/**
 * Writes what clients start from, with a platform admin's token, and writes it anew before that token expires. Disposed of, it removes the
 * ready file, which it does not write again.
 */
export async function publish({
  dir,
  issuer,
  readyFile,
  client,
  ready,
  log,
  isTokenKept,
  renewMs = RENEW_MS,
}: PublishDeps): Promise<AsyncDisposable & { readonly token: string }> {
  async function write(): Promise<string> {
    const token = await issuer.sign({
      subject: 'admin',
      namespace: 'default/default',
      role: 'platform-admin',
      ttlSeconds: ADMIN_TOKEN_HOURS * 3_600,
    })
    await writeClientFiles(dir, { ...client, token: isTokenKept ? token : undefined })
    await readyFile.write({ ...ready, token })
    return token
  }

  const token = await write()
  let renewing: Promise<void> | undefined
  async function renew(): Promise<void> {
    try {
      await write()
    } catch (error) {
      log.error({ err: error }, 'the token was not renewed')
    }
  }
  const renewal = setInterval(() => void (renewing = renew()), renewMs).unref()
  return {
    token,
    async [Symbol.asyncDispose]() {
      clearInterval(renewal)
      await renewing
      await readyFile.remove()
    },
  }
}
