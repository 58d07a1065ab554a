import { randomUUID } from 'node:crypto'
import { lstat, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { MooringError } from '../shared/errors.ts'
import { writeFileAtomic } from './atomic-file.ts'
import { makeDirectory } from './make-directory.ts'

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
  readonly dashboardUrl: string | null
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
