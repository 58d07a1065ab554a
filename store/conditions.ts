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

/** Where a condition stands: its type, the generation it was decided on, and when. */
export interface Stamp {
  readonly type: string
  readonly generation: number
  readonly now: Date
}

/**
 * The list with one condition set. `lastTransitionTime` (whole seconds) moves only when `status` does, so that saying the same again
 * changes nothing and a store emits nothing (Kubernetes API conventions).
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

export function withoutCondition(conditions: readonly Condition[] | undefined, type: string): readonly Condition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type)
}

/** Anything with conditions in its status. */
export interface Conditioned {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined
}

export function conditionOf(object: Conditioned, type: string): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type)
}

/** True when the object's `Ready` condition is True. */
export function isReady(object: Conditioned): boolean {
  return conditionOf(object, 'Ready')?.status === 'True'
}
