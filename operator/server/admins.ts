import type { DatabaseServer } from '../../crds/database-server.ts'
import { partsOf } from '../../crds/motor.ts'
import type { AdminTarget, Engine, EngineAdmin } from '../engines/engine.ts'
import { ENGINES } from '../engines/index.ts'

/** Server that is up, with the operator's admin connection. */
export interface OpenServer {
  readonly engine: Engine
  readonly admin: EngineAdmin
}

/** Registry of admin connections: opened by the server's reconciler, used by all others. */
export interface Admins extends AsyncDisposable {
  /** Admin connection of a server by its object name; undefined while the server is not known to run. */
  get(name: string): OpenServer | undefined
  names(): readonly string[]
  /** Opens a connection, or keeps the open one when nothing changed. @returns undefined when no engine file serves the family */
  open(server: DatabaseServer, target: AdminTarget): { readonly opened: OpenServer; readonly fresh: boolean } | undefined
  /** Calls `handler` with the name of each server that has a new connection. @returns a function that unsubscribes */
  onOpen(handler: (name: string) => void): () => void
  /** Resolves when the first server is open: a status that says Ready before that may be from before the last stop. */
  readonly firstOpen: Promise<unknown>
  /** Closes the connection of a server that is deleted or down. */
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
