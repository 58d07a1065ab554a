/** Merge patch that turns one object into another: null removes what the other lacks (RFC 7396). */
export function replacing<T extends object>(before: object | undefined, after: T): T {
  const old: Readonly<Record<string, unknown>> = { ...before }
  const next = new Map(Object.entries(after).filter(([, value]) => value !== undefined))
  const removed = Object.keys(old).filter((name) => !next.has(name))
  const nested = [...next].map(([name, value]: [string, unknown]) => {
    const was = old[name]
    return [name, isObject(value) && isObject(was) ? replacing(was, value) : value] as const
  })
  // A merge patch may have null where the type has nothing.
  return Object.fromEntries<unknown>([...nested, ...removed.map((name) => [name, null] as const)]) as T
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)
