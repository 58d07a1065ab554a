/** Token bucket: `burst` tokens at once, then one token every `refillMs`. */
export interface Rate {
  readonly burst: number
  readonly refillMs: number
}

/** Limits for the number of events. */
export interface BudgetLimits {
  /** Limit for events about one object. */
  readonly perObject: Rate
  /** Limit for all events. */
  readonly overall: Rate
  /** Number of remembered objects; above it the one with the oldest event is forgotten, and starts again with a full bucket. */
  readonly objects: number
}

export const BUDGET: BudgetLimits = {
  perObject: { burst: 10, refillMs: 60_000 },
  overall: { burst: 100, refillMs: 200 },
  objects: 4_096,
}

interface Bucket {
  readonly left: number
  readonly at: number
}

/** Creates a function that consumes one event at `now` (monotonic milliseconds) and returns whether it may be written. */
export function createBudget(limits: BudgetLimits = BUDGET): (uid: string, now: number) => boolean {
  const objects = new Map<string, Bucket>()
  let overall: Bucket | undefined

  return function mayWrite(uid, now) {
    const own = taken(objects.get(uid), limits.perObject, now)
    const all = taken(overall, limits.overall, now)
    if (!own || !all) return false
    overall = all
    objects.delete(uid)
    objects.set(uid, own)
    if (objects.size > limits.objects) for (const oldest of objects.keys().take(1)) objects.delete(oldest)
    return true
  }
}

/** Bucket after one token was taken; undefined when it is empty. */
function taken(bucket: Bucket | undefined, { burst, refillMs }: Rate, now: number): Bucket | undefined {
  const left = bucket ? Math.min(burst, bucket.left + (now - bucket.at) / refillMs) : burst
  return left >= 1 ? { left: left - 1, at: now } : undefined
}
