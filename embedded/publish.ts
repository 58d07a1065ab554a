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
  /** Whether the token is written to the data directory. The ready file always has it. */
  readonly isTokenKept: boolean
  /** Interval of renewals in milliseconds; default: six hours. */
  readonly renewMs?: number
}

/**
 * Writes the files for clients, with a platform admin's token, and renews it before it expires. Disposing removes the ready file
 * for good.
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
      log.error({ err: error }, 'token of the platform admin was not renewed; retrying later')
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
