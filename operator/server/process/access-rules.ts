import { join } from 'node:path'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import { type EngineAccess, engineAccess } from '../access.ts'
import { writeDurably } from './files/durable-files.ts'
import type { ConfigFile } from './programs/program.ts'

interface Deps {
  /** Directory of the server's configuration. */
  readonly directory: string
  /** Way of clients to the server. */
  readonly way: Pick<AdminTarget, 'insiders' | 'isPublished'>
  /** Returns the file with the rules; undefined for an engine that has them in its data. */
  readonly fileOf: (admin: string, access: EngineAccess | undefined) => ConfigFile | undefined
}

/** Access rules in the configuration of one server, which change while it runs. */
export interface AccessRules {
  /** Receives the newest state of the server. */
  observe(server: DatabaseServer): void
  /** Returns the rules for a configuration that the caller writes now; undefined for a server that is not restricted. */
  take(): EngineAccess | undefined
  /**
   * Writes changed rules of a running server for the admin of this name. The server loads them at the next `admit` of its admin
   * (engines/postgresql/access.ts).
   */
  refresh(admin: string): Promise<void>
}

export function createAccessRules(server: DatabaseServer, { directory, way, fileOf }: Deps): AccessRules {
  let current = server
  let written: string | undefined
  const rules = () => engineAccess(current, way)

  return {
    observe(server) {
      current = server
    },
    take() {
      const access = rules()
      written = JSON.stringify(access)
      return access
    },
    async refresh(admin) {
      const access = rules()
      const text = JSON.stringify(access)
      if (text === written) return
      const file = fileOf(admin, access)
      if (file) await writeDurably(join(directory, file.name), file.content, { mode: 0o644 })
      written = text
    },
  }
}
