import { Secret } from '../../../crds/core.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { Kind } from '../../../crds/kind.ts'
import type { Key, Store } from '../../../store/port.ts'
import { ConfigMap, NetworkPolicy, Pod, Service, StatefulSet } from '../../kubernetes/kinds.ts'
import { createLive, type Live } from '../../kubernetes/live.ts'
import { adminSecretName } from '../credentials.ts'
import { childNames, OWNERSHIP } from './names.ts'

export interface ChildrenDeps {
  readonly store: Store
  /** Namespace of the servers. */
  readonly namespace: string
  readonly onError: (error: unknown) => void
  /** Called with a server's name when one of its objects appeared, changed or was deleted. */
  readonly onChange: (server: string) => void
}

/** Objects of all servers, followed by watches. */
export interface Children {
  readonly statefulSets: Live<typeof StatefulSet>
  readonly services: Live<typeof Service>
  readonly policies: Live<typeof NetworkPolicy>
  readonly configs: Live<typeof ConfigMap>
  readonly certificates: Live<typeof Secret>
  readonly pods: Live<typeof Pod>
  run(signal: AbortSignal): Promise<void>
  synced(): Promise<void>
  /** Starts to report changes of the server's objects. */
  know(server: DatabaseServer): void
  forget(server: DatabaseServer): void
  known(): readonly string[]
}

export function createChildren({ store, namespace, onError, onChange }: ChildrenDeps): Children {
  const scope = { namespace, labels: OWNERSHIP }
  const servers = new Set<string>()
  /** Server by kind and name of an object: a deleted object has no labels to read. */
  const owners = new Map<string, string>()
  const ids = (name: string): readonly string[] => {
    const names = childNames(name)
    return [
      `${StatefulSet.kind} ${names.statefulSet}`,
      `${Service.kind} ${names.service}`,
      `${Service.kind} ${names.pods}`,
      `${NetworkPolicy.kind} ${names.policy}`,
      `${ConfigMap.kind} ${names.config}`,
      `${Secret.kind} ${names.certificate}`,
      `${Secret.kind} ${adminSecretName(name)}`,
      `${Pod.kind} ${names.pod}`,
    ]
  }

  function live<K extends Kind>(kind: K): Live<K> {
    const changed = ({ name }: Key): void => {
      const server = owners.get(`${kind.kind} ${name}`)
      if (server !== undefined) onChange(server)
    }
    return createLive({ store, kind, scope, onError, onChange: changed })
  }

  const lives = {
    statefulSets: live(StatefulSet),
    services: live(Service),
    policies: live(NetworkPolicy),
    configs: live(ConfigMap),
    certificates: live(Secret),
    pods: live(Pod),
  }
  const all = Object.values(lives)

  return {
    ...lives,
    async run(signal) {
      await Promise.all(all.map((each) => each.run(signal)))
    },
    async synced() {
      await Promise.all(all.map((each) => each.synced()))
    },
    know({ metadata }) {
      if (servers.has(metadata.name)) return
      servers.add(metadata.name)
      for (const id of ids(metadata.name)) owners.set(id, metadata.name)
    },
    forget({ metadata }) {
      servers.delete(metadata.name)
      for (const id of ids(metadata.name)) owners.delete(id)
    },
    known: () => [...servers],
  }
}
