import { Secret } from '../../../crds/core.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { Kind, Resource } from '../../../crds/kind.ts'
import { ignoringGone, type Key, type Store, keyOf } from '../../../store/port.ts'
import { ConfigMap, NetworkPolicy, Pod, Service, StatefulSet, PersistentVolumeClaim } from '../../kubernetes/kinds.ts'
import { createLive, type Live } from '../../kubernetes/live.ts'
import { adminSecretName } from '../credentials.ts'
import { childNames, OWNERSHIP, selectorOf } from './manifests.ts'

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
  readonly claims: Live<typeof PersistentVolumeClaim>
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
      `${Secret.kind} ${names.exporter}`,
      `${Secret.kind} ${adminSecretName(name)}`,
      `${Pod.kind} ${names.pod}`,
      `${PersistentVolumeClaim.kind} ${names.claim}`,
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
    claims: live(PersistentVolumeClaim),
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

/** Order of deletion. The StatefulSet deletes its pods, which it would otherwise replace. */
const KINDS: readonly Kind[] = [StatefulSet, Service, PersistentVolumeClaim, ConfigMap, Secret]

/**
 * Deletes all objects of a server, data included. Its NetworkPolicy is deleted last, so that its pod is never without one.
 * @returns true when no object was left at the time of the call
 * @throws StoreError
 */
export async function removeChildren(store: Store, { metadata }: Pick<DatabaseServer, 'metadata'>): Promise<boolean> {
  const scope = { namespace: metadata.namespace, labels: selectorOf(metadata.name) }

  async function find(kind: Kind): Promise<readonly Resource<Kind>[]> {
    return (await store.list(kind, scope)).items
  }

  async function remove(kind: Kind): Promise<number> {
    const found = await find(kind)
    const remaining = found.filter((object) => object.metadata.deletionTimestamp === undefined)
    await Promise.all(remaining.map((object) => removeOne(store, kind, object)))
    return found.length
  }

  let left = 0
  for (const kind of KINDS) left += await remove(kind)
  left += (await find(Pod)).length
  if (left > 0) return false
  return (await remove(NetworkPolicy)) === 0
}

/** Deletes an object, unless it is gone or another one has its name. @throws StoreError */
export async function removeOne(store: Store, kind: Kind, object: Resource<Kind>): Promise<void> {
  await ignoringGone(store.delete(kind, keyOf(object), { uid: object.metadata.uid }))
}
