import { mkdir, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { writeFileAtomic } from './atomic-file.ts'

/** What the ready file says (surface, section 1). Null is what does not run. */
export interface Ready {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** The same over plain HTTP, on loopback. */
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

/** A file that is there exactly while all is ready. */
export interface ReadyFile {
  /** Written whole or not at all, for its owner alone, since it holds a token. Called again when the token is renewed. */
  write(ready: Ready): Promise<void>
  remove(): Promise<void>
}

/** Removes what an earlier run left, so that nobody takes it for this one. Without a path, nothing is ever written. */
export async function createReadyFile(path: string | undefined): Promise<ReadyFile> {
  if (path === undefined) return { write: async () => undefined, remove: async () => undefined }
  const file = resolve(path)
  const remove = () => rm(file, { force: true })
  await remove()
  return {
    remove,
    async write(ready) {
      await mkdir(dirname(file), { recursive: true })
      await writeFileAtomic(file, `${JSON.stringify(ready, undefined, 2)}\n`, 0o600)
    },
  }
}
