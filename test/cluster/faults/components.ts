import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import type { Kubernetes } from '../setup/commands.ts'
import { mainProcess } from './node-processes.ts'
import { KUBECTL_WAIT } from '../../support/patience.ts'

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

/** Pods of Mooring's components in the cluster. */
export interface Components {
  pods(component: Component): Promise<readonly ComponentPod[]>
  /** Returns the process id, on this machine, of the component in a pod. */
  process(component: Component, pod: string): Promise<number>
  /** Scales a component. Resolves when exactly `replicas` pods exist and are ready. */
  scale(component: Component, replicas: number): Promise<void>
  /** Replaces all pods of a component at once: the kubelet would restart repeatedly killed containers later each time. */
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
    kubectl(['rollout', 'status', `deployment/mooring-${component}`, ...IN_SYSTEM, KUBECTL_WAIT])

  return {
    pods,
    async process(component, pod) {
      const found = (await pods(component)).find(({ name }) => name === pod)
      return mainProcess(found?.containerId ?? '')
    },
    async scale(component, replicas) {
      await kubectl(['scale', `deployment/mooring-${component}`, ...IN_SYSTEM, `--replicas=${replicas}`])
      await rolledOut(component)
      if (replicas === 0) await kubectl(['wait', '--for=delete', 'pod', ...IN_SYSTEM, ...selectorOf(component), KUBECTL_WAIT])
    },
    async replace(component) {
      await kubectl(['delete', 'pods', ...IN_SYSTEM, ...selectorOf(component), '--grace-period=0', '--force'])
      await rolledOut(component)
    },
  }
}
