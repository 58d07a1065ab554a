import fc from 'fast-check'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { backoffMs } from '../../../shared/timers.ts'
import { MooringError } from '../../../shared/errors.ts'
import type { Serving } from './bring-up.ts'
import type { LoginAttempt } from './programs/program.ts'
import { RESTART_BACKOFF, Supervisor } from './supervisor.ts'

const credentials = { user: 'admin', password: 'secret' }

interface Script {
  readonly bringUp?: () => Promise<Serving>
  readonly answers?: LoginAttempt[]
  readonly hangs?: boolean
}

/** Supervisor of a server that follows `script`; `change` waits for the next change. */
function staged({ bringUp, answers = [], hangs = false }: Script) {
  let wake = (): void => undefined
  const end = Promise.withResolvers<undefined>()
  const supervisor = new Supervisor({
    host: 'db.example',
    admin: () => Promise.resolve({ host: '127.0.0.1' }),
    bringUp: bringUp ?? (() => Promise.resolve({ process: { pid: 2, startTime: '1' }, port: 5432, exited: end.promise })),
    logIn: () => Promise.resolve(answers.shift() ?? { login: 'accepted' }),
    hangCheck: hangs ? { everyMs: 1, failures: 3, stop: () => Promise.try(end.resolve, undefined) } : undefined,
    lastOutput: () => Promise.resolve('out of memory'),
    changed: () => wake(),
    logger: pino({ level: 'silent' }),
  })
  const change = (): Promise<void> => new Promise((resolve) => (wake = resolve))
  return { supervisor, change, end: () => end.resolve(undefined) }
}

const running = { phase: 'running', host: 'db.example', port: 5432, admin: { host: '127.0.0.1', port: 5432 } }

test('a server is running once it accepts the admin’s login', async () => {
  const { supervisor, change } = staged({ answers: [{ login: 'notYet' }, { login: 'notYet' }] })
  const changed = change()
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'starting' })
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'starting' })
  await changed
  expect(supervisor.ensure(credentials)).toEqual(running)
})

test('a server that ends is failed with its last output, then started again', async () => {
  const { supervisor, change, end } = staged({})
  const started = change()
  supervisor.ensure(credentials)
  await started
  const failed = change()
  end()
  await failed
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'failed', reason: 'Crashed', message: 'it ended: out of memory' })
  await change()
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'starting' })
})

test.each([
  { code: 'ENOSPC', message: 'the disk of its data is full: free space there, and it starts again by itself' },
  { code: 'EIO', message: 'it could not be started (EIO)' },
])('a server whose start fails with $code is failed with a message that says why', async ({ code, message }) => {
  const { supervisor, change } = staged({ bringUp: () => Promise.reject(Object.assign(new Error('write'), { code })) })
  const failed = change()
  supervisor.ensure(credentials)
  await failed
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'failed', reason: 'Crashed', message })
})

test('a running server that needs other settings is brought up again, and the end of its process is no failure', async () => {
  const ends = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
  let starts = 0
  const { supervisor, change } = staged({
    bringUp: () => {
      const end = ends[starts++]
      return Promise.resolve({ process: { pid: 2, startTime: '1' }, port: 5432, exited: end?.promise ?? Promise.resolve() })
    },
  })
  const started = change()
  supervisor.ensure(credentials, 'small')
  await started
  expect(supervisor.ensure(credentials, 'small')).toEqual(running)
  const again = change()
  expect(supervisor.ensure(credentials, 'large')).toEqual({ phase: 'starting' })
  ends[0]?.resolve(undefined)
  await again
  expect(supervisor.ensure(credentials, 'large')).toEqual(running)
  expect(starts).toBe(2)
})

test('a server that may hang is stopped when logins fail three times in a row, then started again', async () => {
  const [no, yes] = [{ login: 'notYet' }, { login: 'accepted' }] as const
  const { supervisor, change } = staged({ hangs: true, answers: [yes, no, no, yes, no, no, no] })
  const started = change()
  supervisor.ensure(credentials)
  await started
  await change()
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'failed', reason: 'Crashed', message: 'it ended: out of memory' })
})

test.each([
  { does: 'a refused admin', script: { answers: [{ login: 'refused', code: '28P01' } as const] }, reason: 'Crashed' },
  {
    does: 'missing binaries',
    script: { bringUp: () => Promise.reject(new MooringError('engine_not_installed', 'not there')) },
    reason: 'MotorUnavailable',
  },
  { does: 'any other error', script: { bringUp: () => Promise.reject(new Error('private detail')) }, reason: 'Crashed' },
])('$does is a failure, reported without private details', async ({ script, reason }) => {
  const { supervisor, change } = staged(script)
  const changed = change()
  supervisor.ensure(credentials)
  await changed
  const state = supervisor.ensure(credentials)
  expect(state).toMatchObject({ phase: 'failed', reason })
  expect(JSON.stringify(state)).not.toContain('private')
})

test('a released server is not started', async () => {
  const { supervisor } = staged({ bringUp: () => Promise.reject(new Error('aborted')) })
  supervisor.ensure(credentials)
  await supervisor.release()
  expect(supervisor.ensure(credentials)).toEqual({ phase: 'absent' })
})

test('the wait before a restart grows, and is at most 30 seconds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2000 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, share) => {
      const wait = (count: number) => backoffMs(RESTART_BACKOFF, count, () => share)
      expect(wait(failures)).toBeGreaterThan(0)
      expect(wait(failures + 1)).toBeGreaterThanOrEqual(wait(failures))
      expect(wait(failures)).toBeLessThanOrEqual(30_000)
    }),
  )
})
