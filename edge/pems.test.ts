import { expect, onTestFinished, test, vi } from 'vitest'
import type { Secret } from '../crds/core.ts'
import { encodeSecret } from '../operator/secret-data.ts'
import { StoreError, type Store } from '../store/port.ts'
import { type Pem, createPems } from './pems.ts'

const NAME = 'tunnel-a-certificate'
const [FIRST, SECOND] = ['2030-01-01T00:00:00.000Z', '2030-03-01T00:00:00.000Z']

/** API with one Secret or none, which answers when a test allows it. */
function setUp(kept: ReadonlyMap<string, Pem> = new Map()) {
  const state = { certificate: 'first' as string | undefined, away: false }
  const questions: (() => void)[] = []
  const get = () => {
    const { promise, resolve, reject } = Promise.withResolvers<Secret | undefined>()
    const metadata = { labels: { 'mooring.dev/endpoint': 'main' } }
    const data = encodeSecret({ 'tls.crt': state.certificate ?? '', 'tls.key': 'key' })
    const secret = state.certificate === undefined ? undefined : ({ metadata, data } as unknown as Secret)
    questions.push(() => (state.away ? reject(new StoreError('unavailable', 'away')) : resolve(secret)))
    return promise
  }
  const pems = createPems({
    ...{ store: { get: get as Store['get'] }, endpoint: 'main', log: { warn: vi.fn() } },
    kept: { all: () => kept, keep: () => undefined },
  })
  onTestFinished(() => pems[Symbol.dispose]())
  async function asked(obtainedAt: string): Promise<string | undefined> {
    const pem = pems.get(NAME, obtainedAt)
    questions.at(-1)?.()
    return (await pem)?.certificate
  }
  return { state, questions, pems, asked }
}

test.each([
  ['later', SECOND],
  ['earlier, by a signer whose clock was set back', '2029-12-31T00:00:00.000Z'],
])('a certificate with the time %s is fetched, once', async (_when, then) => {
  const { state, questions, pems, asked } = setUp()
  expect(await asked(FIRST)).toBe('first')
  state.certificate = 'second'
  expect(pems.isCurrent(NAME, then)).toBe(false)
  for (let visit = 0; visit < 3; visit += 1) expect(await asked(then)).toBe('second')
  expect(questions).toHaveLength(2)
})

test('a shared certificate is not fetched again for tunnels that report the previous time', async () => {
  const { state, questions, asked } = setUp()
  await asked(FIRST)
  state.certificate = 'second'
  for (const obtainedAt of [SECOND, FIRST, SECOND, FIRST, '']) expect(await asked(obtainedAt)).toBe('second')
  expect(questions).toHaveLength(2)
})

test('a stored certificate keeps its time', async () => {
  const { questions, asked } = setUp(new Map([[NAME, { certificate: 'kept', key: 'key', obtainedAt: FIRST }]]))
  expect([await asked(FIRST), questions.length]).toEqual(['kept', 0])
  expect([await asked(SECOND), questions.length]).toEqual(['first', 1])
})

test.each([
  ['did not exist', { certificate: undefined }],
  ['could not be requested', { away: true }],
])('a forgotten certificate that %s is not remembered', async (_what, end) => {
  const { state, questions, pems, asked } = setUp()
  Object.assign(state, end)
  const pem = pems.get(NAME, FIRST)
  pems.forget(NAME)
  questions.at(-1)?.()
  expect(await pem).toBeUndefined()
  Object.assign(state, { certificate: 'first', away: false })
  expect(await asked(FIRST)).toBe('first')
})

test('a certificate forgotten during its fetch is not cached', async () => {
  const { pems, questions } = setUp()
  const pem = pems.get(NAME, FIRST)
  pems.forget(NAME)
  questions.at(-1)?.()
  await pem
  expect(pems.names()).toEqual([])
})
