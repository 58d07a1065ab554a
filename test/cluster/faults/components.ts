import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import type { Kubernetes } from '../setup/kubectl.ts'
import { mainProcess } from './node-processes.ts'

export type Component = 'operator' | 'apiserver'

const IN_SYSTEM = ['--namespace', SYSTEM_NAMESPACE]
const selectorOf = (component: Component) => ['--selector', `app.kubernetes.io/component=${component}`]

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }),
      status: z.object({
        containerStatuses: z
          .array(z.object({ containerID: z.string().default(''), ready: z.boolean(), restartCount: z.int() }))
          .default([]),
      }),
    }),
  ),
})

export interface ComponentPod {
  readonly name: string
  readonly containerId: string
  readonly ready: boolean
  readonly restarts: number
}

/** Mooring's own pods in the cluster. */
export interface Components {
  pods(component: Component): Promise<readonly ComponentPod[]>
  /** Process id, on this machine, of the component in that pod. */
  process(component: Component, pod: string): Promise<number>
  /** Resolves when so many are ready and no more are there. */
  scale(component: Component, replicas: number): Promise<void>
  /** Others come in place of all its pods, at once: those that were killed before would be started again ever later. */
  replace(component: Component): Promise<void>
}

export function componentsOf({ kubectl }: Kubernetes): Components {
  async function pods(component: Component): Promise<readonly ComponentPod[]> {
    const found = Pods.parse(
      JSON.parse(await kubectl(['get', 'pods', ...IN_SYSTEM, ...selectorOf(component), '--output', 'json'])),
    )
    return found.items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata: { name }, status: { containerStatuses } }) => {
        const [container] = containerStatuses
        return {
          ...{ name, containerId: container?.containerID ?? '' },
          ...{ ready: container?.ready ?? false, restarts: container?.restartCount ?? 0 },
        }
      })
  }

  const rolledOut = (component: Component) =>
    kubectl(['rollout', 'status', `deployment/mooring-${component}`, ...IN_SYSTEM, '--timeout=120s'])

  return {
    pods,
    async process(component, pod) {
      const found = (await pods(component)).find(({ name }) => name === pod)
      return mainProcess(found?.containerId ?? '')
    },
    async scale(component, replicas) {
      await kubectl(['scale', `deployment/mooring-${component}`, ...IN_SYSTEM, `--replicas=${replicas}`])
      await rolledOut(component)
      if (replicas === 0) await kubectl(['wait', '--for=delete', 'pod', ...IN_SYSTEM, ...selectorOf(component), '--timeout=60s'])
    },
    async replace(component) {
      await kubectl(['delete', 'pods', ...IN_SYSTEM, ...selectorOf(component), '--grace-period=0', '--force'])
      await rolledOut(component)
    },
  }
}
