import type { EventSource } from './route.ts'
import type { Request, Response } from 'express'
import { contextOf } from './request-context.ts'

/** Proxies and clients take a connection that is silent for longer for dead. */
const HEARTBEAT_MS = 15_000
/** By then the caller asks anew, with a token that is valid then. */
export const LONGEST_MS = 3_600_000
/** A caller that reads more slowly than it is told is let go: what waits for it would grow without end. */
const WAITING_BYTES = 1024 * 1024

const ignore = () => undefined

/** Answers with server-sent events until either side ends it, or the caller's token is accepted no more. */
export function sendEvents(req: Request, res: Response, source: EventSource): void {
  res.status(200).setHeader('Content-Type', 'text/event-stream; charset=utf-8')
  // nginx would hold events back otherwise.
  res.setHeader('X-Accel-Buffering', 'no')
  if (req.method === 'HEAD') {
    // What it holds is held from before its start.
    source.start(ignore, ignore)()
    res.end()
    return
  }
  res.flushHeaders()
  const begun = performance.now()
  const { isStillAccepted } = contextOf(req)
  const mayGoOn = async () => (await isStillAccepted?.()) === true && (await source.mayGoOn())
  const end = () => void res.end()
  const write = (text: string) => {
    if (res.writableEnded) return
    res.write(text)
    if (res.writableLength > WAITING_BYTES) res.destroy()
  }
  const beat = async (): Promise<void> => {
    if (performance.now() - begun < LONGEST_MS && (await mayGoOn())) write(':\n\n')
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
