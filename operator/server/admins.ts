import type { DatabaseServer } from '../../crds/database-server.ts'
import { partsOf } from '../../crds/motor.ts'
import type { AdminTarget, Engine, EngineAdmin } from '../engines/engine.ts'
import { ENGINES } from '../engines/index.ts'

/** A server that is up, with the operator's way in. */
export interface OpenServer {
  readonly engine: Engine
  readonly admin: EngineAdmin
}

/** Who holds the admin connections: opened by the server's reconciler, used by all others. */
export interface Admins extends AsyncDisposable {
  /** Way into a server by its object name; undefined while it is not known to run. */
  get(name: string): OpenServer | undefined
  names(): readonly string[]
  /** Opens it, or keeps what is open when nothing changed. @returns undefined when no engine file serves its family */
  open(server: DatabaseServer, target: AdminTarget): { readonly opened: OpenServer; readonly fresh: boolean } | undefined
  /** Calls `handler` with the name of each server that a new way leads into. Returns how to stop that. */
  onOpen(handler: (name: string) => void): () => void
  /** Resolves when the first server is open: until then a status that says Ready is one from before the last stop. */
  readonly firstOpen: Promise<unknown>
  /** The server is gone or down. */
  forget(name: string): Promise<void>
}

export function createAdmins(): Admins {
  const open = new Map<string, { readonly id: string; readonly server: OpenServer }>()
  const handlers = new Set<(name: string) => void>()
  const first = Promise.withResolvers<undefined>()

  async function forget(name: string): Promise<void> {
    const entry = open.get(name)
    open.delete(name)
    await entry?.server.admin[Symbol.asyncDispose]()
  }

  return {
    get: (name) => open.get(name)?.server,
    names: () => [...open.keys()],
    open(server, target) {
      const name = server.metadata.name
      const id = JSON.stringify([server.metadata.uid, target])
      const known = open.get(name)
      if (known?.id === id) return { opened: known.server, fresh: false }
      const engine = ENGINES.get(partsOf(server.spec.motor).family)
      if (!engine) return undefined
      if (known) void known.server.admin[Symbol.asyncDispose]()
      const opened = { engine, admin: engine.admin(target) }
      open.set(name, { id, server: opened })
      first.resolve(undefined)
      for (const handler of handlers) handler(name)
      return { opened, fresh: true }
    },
    onOpen(handler) {
      handlers.add(handler)
      return () => void handlers.delete(handler)
    },
    firstOpen: first.promise,
    forget,
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([...open.keys()].map(forget))
    },
  }
}
