import type { Pod } from '../../kubernetes/kinds.ts'
import { podState } from '../../kubernetes/pod-state.ts'
import type { EdgeState } from '../runtime.ts'
import type { Deployment } from './kinds.ts'

/** What an edge says on its way out is written for people, and holds no secret. */
const isShowable = (): boolean => true

/** How many edges answer, and while none does, why. Pure. */
export function edgesState(deployment: Deployment, pods: readonly Pod[]): EdgeState {
  const ready = deployment.status?.readyReplicas ?? 0
  if (ready > 0) return { ready }
  if (deployment.spec.replicas === 0) return { ready, message: 'it wants no edges: spec.replicas is 0' }
  const refusal = refusalOf(deployment)
  return refusal === undefined ? { ready, ...troubleOf(pods) } : { ready, message: refusal, isFailing: true }
}

/** The API server lets no pod be made: a quota, or an admission controller. */
function refusalOf({ status }: Deployment): string | undefined {
  const failure = status?.conditions.find(({ type, status: holds }) => type === 'ReplicaFailure' && holds === 'True')
  return failure && `its pods cannot be made: ${failure.message ?? ''}`
}

function troubleOf(pods: readonly Pod[]): Omit<EdgeState, 'ready'> {
  const states = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map((pod) => podState(pod, isShowable))
  const worst = states.find(({ phase }) => phase === 'failed') ?? states[0]
  if (!worst || worst.phase === 'serving') return { message: 'no edge answers yet' }
  return { message: worst.message, ...(worst.phase === 'failed' && { isFailing: true }) }
}
