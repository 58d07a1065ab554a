import { ApiError } from './errors.ts'

/** Streams that one principal may hold open, and all together. */
const PER_PRINCIPAL = 10
const IN_ALL = 500

/** Limits how many follow at once: each is a connection that stays open. */
export interface FollowLimit {
  /** Takes a place. Returns how to give it back, once. @throws ApiError `rate_limited` */
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
      let given = false
      return () => {
        if (given) return
        given = true
        all -= 1
        const left = (following.get(user) ?? 1) - 1
        if (left > 0) following.set(user, left)
        else following.delete(user)
      }
    },
  }
}
