import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JournalLogin } from '../../../journal/postgresql.ts'
import { openSpool, type Spool, type SpoolOptions } from '../../../journal/spool.ts'
import { silent } from './temporary-journal.ts'

/** Directory for a spool, and another one with the login that it ships with. */
export interface TemporarySpool extends AsyncDisposable {
  readonly directory: string
  readonly login: string
  /** Writes the login that the spool reads, as when a Secret is mounted or changes. */
  setLogin(login: JournalLogin): Promise<void>
  open(options?: Partial<SpoolOptions>): Promise<Spool>
}

export async function temporarySpool(): Promise<TemporarySpool> {
  const root = await mkdtemp(join(tmpdir(), 'mooring-spool-'))
  const [directory, login] = [join(root, 'spool'), join(root, 'login')]
  await mkdir(login)
  return {
    directory,
    login,
    async setLogin({ uri, ca }) {
      if (ca !== undefined) await writeFile(join(login, 'ca.crt'), ca)
      await writeFile(join(root, 'uri'), uri)
      await rename(join(root, 'uri'), join(login, 'uri'))
    },
    open: (options = {}) => openSpool({ directory, login, log: silent, ...options }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}
