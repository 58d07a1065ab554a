import { pino, type Logger } from 'pino'
import { type AppDeps, createApp, createRequestLimiters } from '../../../apiserver/http/app.ts'
import { AuthenticationError } from '../../../apiserver/auth/authentication-error.ts'
import { DEFAULT_LIMITS } from '../../../apiserver/http/rate-limit.ts'
import { createMetrics } from '../../../apiserver/metrics.ts'
import type { AnyRoute } from '../../../apiserver/http/route.ts'
import { type HttpApp, serveApp } from './http-app.ts'

export interface ToyApp extends HttpApp {
  /** Log lines so far, parsed. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly metrics: ReturnType<typeof createMetrics>
}

export function createLines(): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  return { log: pino({ level: 'debug' }, { write }), lines }
}

/** Serves `routes` on the shared listener. A token is the user's name; the token `bad` is rejected. */
export async function serveRoutes(routes: readonly AnyRoute[], changes: Partial<AppDeps> = {}): Promise<ToyApp> {
  const metrics = createMetrics()
  const { log, lines } = createLines()
  const verifyJwt = async (token: string) => {
    if (token === 'bad') throw new AuthenticationError('invalid')
    return { user: `local:${token}`, groups: [] }
  }
  const app = createApp({
    listener: 'shared',
    routes,
    verifyJwt,
    verifyApiToken: () => {
      throw new AuthenticationError('invalid')
    },
    limiters: createRequestLimiters(DEFAULT_LIMITS),
    metrics,
    log,
    ...changes,
  })
  const served = await serveApp(app)
  const dispose = async () => {
    await served[Symbol.asyncDispose]()
    metrics.close()
  }
  return { ...served, lines, metrics, [Symbol.asyncDispose]: dispose }
}
