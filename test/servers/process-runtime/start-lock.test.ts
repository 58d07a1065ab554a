import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { tryLock, withLock } from '../../../operator/server/process/spawn/serving.ts'

const neverAborted = new AbortController().signal

test('a lock has one holder at a time', async () => {
  const name = randomUUID()
  let inside = 0
  const most: number[] = []
  const work = (): Promise<void> =>
    withLock(name, neverAborted, async () => {
      most.push((inside += 1))
      await Promise.resolve()
      inside -= 1
    })
  await Promise.all([work(), work(), work()])
  expect(most).toEqual([1, 1, 1])
})

test('locks of two directories are independent', async () => {
  await using one = await tryLock(randomUUID())
  await using two = await tryLock(randomUUID())
  expect(one && two).toBeDefined()
})

test('failing work releases the lock', async () => {
  const name = randomUUID()
  await expect(withLock(name, neverAborted, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  await using held = await tryLock(name)
  expect(held).toBeDefined()
})

test('waiting ends when the signal aborts', async () => {
  const name = randomUUID()
  await using held = await tryLock(name)
  expect(held).toBeDefined()
  await expect(withLock(name, AbortSignal.timeout(10), () => Promise.resolve())).rejects.toThrow()
})

test('a killed process releases its lock', async () => {
  const name = randomUUID()
  const module = new URL('../../../operator/server/process/spawn/serving.ts', import.meta.url).href
  const script = `const { tryLock } = await import('${module}'); await tryLock('${name}'); console.log('held'); process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script])
  await once(child.stdout, 'data')
  expect(await tryLock(name)).toBeUndefined()
  child.kill('SIGKILL')
  await once(child, 'exit')
  await using held = await tryLock(name)
  expect(held).toBeDefined()
})
