import { patient } from './patience.ts'

/** Bound on a DELETE, a reset and an expiry, whatever tenants do: 5 s on a quiet machine. */
const BOUND_MS = patient(5_000)

/** Returns the result of `work`. @throws Error when it takes longer than the bound */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not done after ${BOUND_MS} ms`)), BOUND_MS)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
