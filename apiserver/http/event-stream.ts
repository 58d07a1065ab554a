import type { Request, Response } from 'express'
import type { EventSource } from './route.ts'
import { contextOf } from './request-context.ts'
import { ApiError } from './errors.ts'

/** Interval of heartbeats: shorter than the idle timeouts of common proxies and clients. */
const HEARTBEAT_MS = 15_000
/** Maximum duration of a stream; the caller then connects again with a valid token. */
export const LONGEST_MS = 3_600_000
/** Maximum of unsent bytes: a caller that reads too slowly is disconnected. */
const MAX_BUFFERED_BYTES = 1024 * 1024

const ignore = () => undefined

/** Answers with server-sent events until either side ends the stream or the caller is not authorized any more. */
export function sendEvents(req: Request, res: Response, source: EventSource): void {
  res.status(200).setHeader('Content-Type', 'text/event-stream; charset=utf-8')
  // Turns off response buffering in nginx.
  res.setHeader('X-Accel-Buffering', 'no')
  if (req.method === 'HEAD') {
    // The source took its slot before; starting and stopping it releases the slot.
    source.start(ignore, ignore)()
    res.end()
    return
  }
  res.flushHeaders()
  const begun = performance.now()
  const { isStillAccepted, isSessionOpen = async () => true } = contextOf(req)
  const isStillAuthorized = async () =>
    (await isSessionOpen()) && (await isStillAccepted?.()) === true && (await source.isStillAuthorized())
  const end = () => void res.end()
  const write = (text: string) => {
    if (res.writableEnded) return
    // Events that arrive together leave in one piece, instead of one TLS record each.
    if (res.writableCorked === 0) {
      res.cork()
      setImmediate(() => res.uncork())
    }
    res.write(text)
    if (res.writableLength > MAX_BUFFERED_BYTES) res.destroy()
  }
  const beat = async (): Promise<void> => {
    if (performance.now() - begun < LONGEST_MS && (await isStillAuthorized())) write(':\n\n')
    else end()
  }
  const stop = source.start(({ id, event, data }) => write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`), end)
  const heart = setInterval(() => void beat().catch(end), HEARTBEAT_MS)
  res.once('close', () => {
    clearInterval(heart)
    stop()
  })
  write(':\n\n')
}

/** Maximum of open streams of one principal. */
const PER_PRINCIPAL = 10
/** Maximum of open streams of all principals together. */
const IN_ALL = 500

const tooMany = (message: string) => new ApiError('rate_limited', message, { headers: { 'Retry-After': '5' } })

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
      if (mine >= perPrincipal) throw tooMany(`you have ${perPrincipal} streams open, which is the limit; close one`)
      if (all >= inAll) throw tooMany('too many streams are open on this server; retry later')
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
