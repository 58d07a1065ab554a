import { createHash, randomBytes } from 'node:crypto'

/** Validity of a link in milliseconds. */
const VALID_MS = 12 * 3_600_000

/** Links that sign in to the dashboard, each once. Their codes are in memory, so a restart makes them invalid. */
export interface SignInLinks {
  /** Returns a link with a new code. The code is in the fragment of the URL, which browsers never send, so it appears in no log. */
  issue(origin: string): string
  /** Returns whether the code is valid, and makes it invalid. */
  redeem(code: string): boolean
}

export function createSignInLinks(now: () => number = Date.now): SignInLinks {
  /** Ends of validity in milliseconds since the epoch, by the hash of the code. */
  const valid = new Map<string, number>()

  return {
    issue(origin) {
      for (const [hash, until] of valid) if (until <= now()) valid.delete(hash)
      const code = randomBytes(24).toString('base64url')
      valid.set(hashOf(code), now() + VALID_MS)
      return `${origin}/dashboard#code=${code}`
    },
    redeem(code) {
      const hash = hashOf(code)
      const until = valid.get(hash)
      valid.delete(hash)
      return until !== undefined && until > now()
    },
  }
}

const hashOf = (code: string): string => createHash('sha256').update(code).digest('base64')
