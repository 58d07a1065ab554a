import type { Pod } from '../../kubernetes/kinds.ts'
import { podState } from '../../kubernetes/pod-state.ts'
import type { EdgeState } from '../runtime.ts'
import type { Deployment } from './kinds.ts'

/** Whether a log line may be shown: the last line of an edge is written for people and holds no secret. */
const isShowable = (): boolean => true

/** Returns the number of ready edges and, while there is no ready edge, the reason. Pure. */
export function edgesState(deployment: Deployment, pods: readonly Pod[]): EdgeState {
  const ready = deployment.status?.readyReplicas ?? 0
  if (ready > 0) return { ready }
  if (deployment.spec.replicas === 0) return { ready, message: 'no edges are desired: spec.replicas is 0' }
  const refusal = refusalOf(deployment)
  return refusal === undefined ? { ready, ...troubleOf(pods) } : { ready, message: refusal, isFailing: true }
}

/** Rejection of pods by the API server: a quota, or an admission controller. */
function refusalOf({ status }: Deployment): string | undefined {
  const failure = status?.conditions.find(({ type, status: holds }) => type === 'ReplicaFailure' && holds === 'True')
  return failure && `its pods cannot be created: ${failure.message ?? ''}`
}

function troubleOf(pods: readonly Pod[]): Omit<EdgeState, 'ready'> {
  const states = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map((pod) => podState(pod, isShowable))
  const worst = states.find(({ phase }) => phase === 'failed') ?? states[0]
  if (!worst || worst.phase === 'serving') return { message: 'no edge answers yet' }
  return { message: worst.message, ...(worst.phase === 'failed' && { isFailing: true }) }
}
