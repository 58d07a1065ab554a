import { ApiError } from './errors.ts'

/** Maximum of open streams of one principal. */
const PER_PRINCIPAL = 10
/** Maximum of open streams of all principals together. */
const IN_ALL = 500

/** Limit of open streams; each holds a connection. */
export interface FollowLimit {
  /** Takes a slot and returns the function that releases it. @throws ApiError `rate_limited` */
  take(user: string): () => void
}

export function createFollowLimit({ perPrincipal = PER_PRINCIPAL, inAll = IN_ALL } = {}): FollowLimit {
  const following = new Map<string, number>()
  let all = 0

  return {
    take(user) {
      const mine = following.get(user) ?? 0
      if (mine >= perPrincipal || all >= inAll) {
        throw new ApiError('rate_limited', `you have ${perPrincipal} streams open, which is the limit; close one`, {
          headers: { 'Retry-After': '5' },
        })
      }
      following.set(user, mine + 1)
      all += 1
      let isReleased = false
      return () => {
        if (isReleased) return
        isReleased = true
        all -= 1
        const left = (following.get(user) ?? 1) - 1
        if (left > 0) following.set(user, left)
        else following.delete(user)
      }
    },
  }
}
