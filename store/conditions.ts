import type { Condition } from '../crds/kind.ts'

/** A condition as a decision gives it; {@link withCondition} adds the time. */
export interface Decision {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
}

export const ready = (reason: string, message: string): Decision => ({ status: 'True', reason, message })
export const notReady = (reason: string, message: string): Decision => ({ status: 'False', reason, message })

/** Longest message a condition may hold (crds/kind.ts). */
const MESSAGE_MAX = 1024

/** Type of a condition, with the generation and time of the decision. */
export interface Stamp {
  readonly type: string
  readonly generation: number
  readonly now: Date
}

/**
 * Returns the list with one condition set. `lastTransitionTime` (whole seconds) changes only when `status` changes, so setting an equal
 * condition changes nothing and causes no watch event (Kubernetes API conventions).
 */
export function withCondition(
  conditions: readonly Condition[] | undefined,
  decision: Decision,
  stamp: Stamp,
): readonly Condition[] {
  const before = conditions?.find((condition) => condition.type === stamp.type)
  const moved = before?.status !== decision.status
  const next: Condition = {
    type: stamp.type,
    status: decision.status,
    reason: decision.reason,
    message: decision.message.slice(0, MESSAGE_MAX),
    lastTransitionTime: moved ? `${stamp.now.toISOString().slice(0, 19)}Z` : before.lastTransitionTime,
    observedGeneration: stamp.generation,
  }
  return [...(conditions ?? []).filter((condition) => condition.type !== stamp.type), next]
}

/** Returns the list without one condition. */
export function withoutCondition(conditions: readonly Condition[] | undefined, type: string): readonly Condition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type)
}

/** Object with conditions in its status. */
export interface Conditioned {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined
}

export function conditionOf(object: Conditioned, type: string): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type)
}

/** Whether the object's `Ready` condition is True. */
export function isReady(object: Conditioned): boolean {
  return conditionOf(object, 'Ready')?.status === 'True'
}
