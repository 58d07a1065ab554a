import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JournalLogin } from '../../../journal/postgresql.ts'
import { openSpool, type Spool, type SpoolOptions } from '../../../journal/spool.ts'
import { silent } from './temporary-journal.ts'

/** For tests: a directory for a spool, and one with the login that it ships by. */
export interface SpoolPlace extends AsyncDisposable {
  readonly directory: string
  readonly login: string
  /** Puts a login where the spool reads it, as when a Secret is mounted or changes. */
  setLogin(login: JournalLogin): Promise<void>
  open(options?: Partial<SpoolOptions>): Promise<Spool>
}

export async function spoolPlace(): Promise<SpoolPlace> {
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
