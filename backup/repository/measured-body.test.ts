import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { body, randomBody, read, sha256 } from '../../test/conformance/repository/test-repository.ts'
import { measured } from './measured-body.ts'

test('a body is measured while it is read', async () => {
  const source = measured(body('abcdef', 2), undefined)
  expect(source.isStarted()).toBe(false)
  expect((await read(source.chunks)).toString()).toBe('abcdef')
  expect(source.stored()).toEqual({ sizeBytes: 6, sha256: sha256(Buffer.from('abcdef')) })
  expect(source.isStarted()).toBe(true)
  source.throwFailure()
})

test("throwFailure throws the body's own error", async () => {
  const broken = new Error('broken')
  const source = measured(randomBody(100_000, broken), undefined)
  await expect(read(source.chunks)).rejects.toBe(broken)
  expect(() => source.throwFailure()).toThrow(broken)
})

test('throwFailure throws the reason of an abort', async () => {
  const stop = new AbortController()
  const source = measured(randomBody(100_000), stop.signal)
  const reason = new Error('stopped')
  stop.abort(reason)
  await expect(read(source.chunks)).rejects.toBe(reason)
  expect(() => source.throwFailure()).toThrow(reason)
})

test('throwFailure does not throw an error of the reader, which ends the body', async () => {
  let ended = false
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      yield* randomBody(1_000_000)
    } finally {
      ended = true
    }
  }
  const source = measured(watched(), undefined)
  const stream = Readable.from(source.chunks)
  const reading = (async () => {
    for await (const chunk of stream) stream.destroy(new Error(`the reader fails at ${String(chunk)}`))
  })()
  await expect(reading).rejects.toThrow('the reader fails')
  await expect.poll(() => ended).toBe(true)
  source.throwFailure()
})
