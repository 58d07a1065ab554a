import { rm, lstat } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { TokenIssuer } from '../apiserver/auth/issuer.ts'
import type { DataDir } from './data-dir.ts'
import { writeFileAtomic, makeDirectory } from './files.ts'
import { MooringError } from '../shared/errors.ts'

const ADMIN_TOKEN_HOURS = 12
const RENEW_MS = 6 * 3_600_000

export interface PublishDeps {
  readonly dir: DataDir
  readonly issuer: TokenIssuer
  readonly readyFile: ReadyFile
  readonly client: Omit<ClientFiles, 'token'>
  readonly ready: Omit<Ready, 'token' | 'dashboardUrl'>
  /** Returns a new link that signs in to the dashboard once. */
  readonly dashboardUrl: () => string
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
  dashboardUrl,
  log,
  isTokenKept,
  renewMs = RENEW_MS,
}: PublishDeps): Promise<AsyncDisposable & Published> {
  async function write(): Promise<Published> {
    const credentials = { token: await signAdminToken(issuer), dashboardUrl: dashboardUrl() }
    await writeClientFiles(dir, { ...client, token: isTokenKept ? credentials.token : undefined })
    await readyFile.write({ ...ready, ...credentials })
    return credentials
  }

  const published = await write()
  /** One renewal at a time: the disposal waits for it alone. */
  let renewing: Promise<void> | undefined
  async function renew(): Promise<void> {
    try {
      await write()
    } catch (error) {
      log.error({ err: error }, 'token of the platform admin was not renewed; retrying later')
    } finally {
      renewing = undefined
    }
  }
  const renewal = setInterval(() => void (renewing ??= renew()), renewMs).unref()
  return {
    ...published,
    async [Symbol.asyncDispose]() {
      clearInterval(renewal)
      await renewing
      await readyFile.remove()
    },
  }
}

/** Credentials of the platform admin, valid for 12 hours. */
export type Published = Pick<Ready, 'token' | 'dashboardUrl'>

/** Returns a new token of the platform admin. */
export function signAdminToken(issuer: TokenIssuer): Promise<string> {
  return issuer.sign({
    subject: 'admin',
    namespace: 'default/default',
    role: 'platform-admin',
    ttlSeconds: ADMIN_TOKEN_HOURS * 3_600,
  })
}

interface ClientFiles {
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

/** Error code of a start that failed because of the setting `--ready-file`. */
export const READY_FILE_UNUSABLE = 'ready_file_unusable'

/** Content of the ready file (docs/install.md). Null stands for a part that does not run. */
export interface Ready {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** URLs of plain HTTP on loopback. */
  readonly sharedHttpUrl: string | null
  readonly dedicatedHttpUrl: string | null
  /** JWT of the platform admin. */
  readonly token: string
  /** Absolute path of the local CA's PEM file. */
  readonly ca: string
  readonly sshHost: string | null
  readonly sshPort: number | null
  readonly httpPort: number | null
  readonly httpsPort: number | null
  readonly domain: string
  readonly metricsUrl: string
  /** Link that signs in to the dashboard as platform admin, once. */
  readonly dashboardUrl: string
  /** Integer id of the region, for tunnels. */
  readonly regionId: number
  /** UUID of the region, for databases. */
  readonly region: string
}

/** File that exists exactly while Mooring is ready. */
export interface ReadyFile {
  /** Writes the file atomically, readable by its owner alone, since it holds a token. Called again when the token is renewed. */
  write(ready: Ready): Promise<void>
  remove(): Promise<void>
}

/**
 * Removes the file of an earlier run, so that no client takes it for this one, and checks that the file can be written later.
 * Without a path no file is ever written.
 * @throws MooringError `ready_file_unusable`, with the fault of the setting
 */
export async function createReadyFile(path: string | undefined): Promise<ReadyFile> {
  if (path === undefined) return { write: async () => undefined, remove: async () => undefined }
  const file = resolve(path)
  const remove = () => rm(file, { force: true })
  const put = async (to: string, content: string) => {
    await makeDirectory(dirname(to))
    await writeFileAtomic(to, content, 0o600)
  }
  try {
    await requireFile(file)
    await remove()
    const trial = `${file}.${randomUUID()}`
    await put(trial, '')
    await rm(trial)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const sentence = `--ready-file must be a file that can be written, not ${JSON.stringify(path)}: ${why}.`
    throw new MooringError(READY_FILE_UNUSABLE, sentence, { cause })
  }
  return { remove, write: (ready) => put(file, `${JSON.stringify(ready, undefined, 2)}\n`) }
}

/** Rejects devices and pipes, which would be removed like a file. */
async function requireFile(path: string): Promise<void> {
  const there = await lstat(path).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  })
  if (there?.isDirectory()) throw new Error('it is a directory')
  if (there && !there.isFile() && !there.isSymbolicLink()) throw new Error('it exists and is not a regular file')
}
