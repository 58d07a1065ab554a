/** A bucket of tokens: `burst` at once, then one every `refillMs`. */
export interface Rate {
  readonly burst: number
  readonly refillMs: number
}

/** How many events may be written. */
export interface BudgetLimits {
  /** About one object. */
  readonly perObject: Rate
  /** Altogether. */
  readonly overall: Rate
  /** Objects that are remembered; the one that was told of longest ago is forgotten first, and begins with a full bucket again. */
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

/** Whether one more event about an object may be written at `now` (milliseconds of any clock that does not go back), which it then was. */
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

/** The bucket after one more was taken out; undefined when it is empty. */
function taken(bucket: Bucket | undefined, { burst, refillMs }: Rate, now: number): Bucket | undefined {
  const left = bucket ? Math.min(burst, bucket.left + (now - bucket.at) / refillMs) : burst
  return left >= 1 ? { left: left - 1, at: now } : undefined
}
