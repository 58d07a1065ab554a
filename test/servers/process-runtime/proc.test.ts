import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { holdersOf, isAlive, parseStat, processOf, sendSignal, waitForExit } from '../../../operator/server/process/spawn/proc.ts'
import { openDirectory } from '../../../operator/server/process/spawn/spawn-engine.ts'
import { patient } from '../../support/patience.ts'

const stat = (command: string, state: string, startTime: number, threads = 1): string => {
  const before = Array.from({ length: 16 }, (_, at) => `${at}`).join(' ')
  return `12 (${command}) ${state} ${before} ${threads} 0 ${startTime} 1000 2000\n`
}

test('parseStat reads the start time after any command name', () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('R', 'S', 'D', 'T'), fc.nat(), (command, state, startTime) => {
      expect(parseStat(stat(command, state, startTime))).toBe(`${startTime}`)
    }),
  )
})

test.each(['Z', 'X'])('parseStat treats a process in state %s as dead', (state) => {
  expect(parseStat(stat('postgres', state, 5))).toBeUndefined()
})

test('parseStat treats a zombie as alive while it has further threads, which hold its ports and locks', () => {
  expect(parseStat(stat('mysqld', 'Z', 5, 2))).toBe('5')
})

test('parseStat does not throw for any text', () => {
  fc.assert(fc.property(fc.string(), (text) => void parseStat(text)))
})

test('sendSignal signals a process only when its start time matches', async () => {
  const child = spawn('sleep', ['60'])
  const id = await processOf(child.pid ?? 0)
  if (!id) throw new Error('it is not running')
  expect(await sendSignal({ ...id, startTime: '1' }, 'SIGKILL')).toBe(false)
  expect(await isAlive(id)).toBe(true)
  expect(await sendSignal(id, 'SIGKILL')).toBe(true)
  expect(await waitForExit([id], patient(60_000))).toBe(true)
  expect(await sendSignal(id, 'SIGKILL')).toBe(false)
})

test('holdersOf finds the processes that hold a directory, including forked ones', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-proc-'))
  await using handle = await openDirectory(directory)
  const shell = spawn('sh', ['-c', 'sleep 60 & echo started; wait'], {
    stdio: ['ignore', 'pipe', 'ignore', handle.fd],
    detached: true,
  })
  if (shell.stdout) await once(shell.stdout, 'data')
  const holders = await holdersOf(directory)
  expect(holders.map(({ pid }) => pid)).toContain(shell.pid)
  expect(holders.length).toBe(2)
  await Promise.all(holders.map((holder) => sendSignal(holder, 'SIGKILL')))
  await waitForExit(holders, patient(60_000))
  expect(await holdersOf(directory)).toEqual([])
  await rmdir(directory)
})
