import { RoleBinding } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { edgeName, meshName } from '../../../shared/edge-objects.ts'
import { labels, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { createCache } from '../../../store/cache.ts'
import type { Key, Store } from '../../../store/port.ts'
import { NetworkPolicy, Pod, Service } from '../../kubernetes/kinds.ts'
import { createLive, type Live } from '../../kubernetes/live.ts'
import { Deployment, PodDisruptionBudget, Role, ServiceAccount, OWNERSHIP } from './kinds.ts'

export interface ChildrenDeps {
  readonly store: Store
  readonly onError: (error: unknown) => void
  /** Called with an endpoint's name when one of its objects appeared, changed or was deleted. */
  readonly onChange: (endpoint: string) => void
}

/** Objects of all endpoints, except Secrets, which are not watched. */
export interface Children {
  readonly deployments: Live<typeof Deployment>
  readonly services: Live<typeof Service>
  readonly budgets: Live<typeof PodDisruptionBudget>
  readonly accounts: Live<typeof ServiceAccount>
  readonly roles: Live<typeof Role>
  readonly bindings: Live<typeof RoleBinding>
  readonly policies: Live<typeof NetworkPolicy>
  /** Pods of an endpoint. */
  pods(endpoint: string): readonly Pod[]
  run(signal: AbortSignal): Promise<void>
  synced(): Promise<void>
  /** Starts to report changes of the endpoint's objects. */
  know(endpoint: string): void
  forget(endpoint: string): void
  known(): readonly string[]
}

export function createChildren({ store, onError, onChange }: ChildrenDeps): Children {
  const scope = { namespace: SYSTEM_NAMESPACE, labels: OWNERSHIP }
  /** Endpoint by object name: a deleted object has no labels to read. */
  const owners = new Map<string, string>()
  const namesOf = (endpoint: string) => [edgeName(endpoint), meshName(endpoint)]
  const known = new Set<string>()

  function live<K extends Kind>(kind: K): Live<K> {
    const changed = ({ name }: Key): void => {
      const endpoint = owners.get(name)
      if (endpoint !== undefined) onChange(endpoint)
    }
    return createLive({ store, kind, scope, onError, onChange: changed })
  }

  const lives = {
    deployments: live(Deployment),
    services: live(Service),
    budgets: live(PodDisruptionBudget),
    accounts: live(ServiceAccount),
    roles: live(Role),
    bindings: live(RoleBinding),
    policies: live(NetworkPolicy),
  }
  const pods = createCache({ store, kind: Pod, scope, onError, indexes: { endpoint: ({ metadata }) => endpointOf(metadata) } })
  // The deletion of a pod also changes its Deployment, which reports it.
  pods.onChange((key) => endpointOf(pods.get(key)?.metadata ?? {}).forEach(onChange))
  const all = [...Object.values(lives), pods]

  return {
    ...lives,
    pods: (endpoint) => pods.byIndex('endpoint', endpoint),
    async run(signal) {
      await Promise.all(all.map((each) => each.run(signal)))
    },
    async synced() {
      await Promise.all(all.map((each) => each.synced()))
    },
    know(endpoint) {
      known.add(endpoint)
      for (const name of namesOf(endpoint)) owners.set(name, endpoint)
    },
    forget(endpoint) {
      known.delete(endpoint)
      for (const name of namesOf(endpoint)) owners.delete(name)
    },
    known: () => [...known],
  }
}

function endpointOf({ labels: given }: Pick<Pod['metadata'], 'labels'>): readonly string[] {
  const endpoint = given?.[labels.endpoint]
  return endpoint === undefined ? [] : [endpoint]
}
