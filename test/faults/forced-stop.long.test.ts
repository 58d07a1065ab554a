import { once } from 'node:events'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { sendSignal } from '../../operator/server/process/spawn/proc.ts'
import { engineProcesses, mainProcesses } from '../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { patient } from '../support/patience.ts'

const LOSE_STORE = fileURLToPath(new URL('../support/store/lose-store.ts', import.meta.url))
const LOOK = { interval: 20, timeout: patient(20_000) }

async function freezeEngines({ dataDir }: Mooring): Promise<void> {
  for (const engine of await mainProcesses(dataDir)) await sendSignal(engine, 'SIGSTOP')
}

const isReady = ({ dataDir }: Mooring): Promise<boolean> =>
  access(join(dataDir, 'ready.json')).then(
    () => true,
    () => false,
  )

test('a stop first removes the ready file and kills engines that do not stop in time', async () => {
  await using mooring = await startMooring()
  await freezeEngines(mooring)
  const ended = once(mooring.process, 'exit')
  mooring.process.kill('SIGTERM')
  await expect.poll(() => isReady(mooring), LOOK).toBe(false)
  expect(await engineProcesses(mooring.dataDir)).not.toEqual([])
  expect(await ended).toEqual([0, null])
  expect(await engineProcesses(mooring.dataDir)).toEqual([])
})

test('a second Ctrl-C ends Mooring and all engines at once', async () => {
  await using mooring = await startMooring()
  await freezeEngines(mooring)
  const ended = once(mooring.process, 'exit')
  mooring.process.kill('SIGINT')
  await expect.poll(() => mooring.process.kill('SIGINT') && mooring.process.exitCode === null, LOOK).toBe(false)
  expect(await ended).toEqual([130, null])
  // The output may arrive after the exit.
  await expect.poll(() => mooring.output(), LOOK).toContain('mooring: second signal')
  expect(await engineProcesses(mooring.dataDir)).toEqual([])
})

test('Mooring exits with a message and code 1 when it cannot write its state, and leaves no process running', async () => {
  await using mooring = await startMooring({ node: ['--import', LOSE_STORE] })
  const ended = once(mooring.process, 'exit')
  mooring.process.kill('SIGUSR2')
  expect(await ended).toEqual([1, null])
  await expect.poll(() => mooring.output(), LOOK).toMatch(/^mooring: the state in .* cannot be written: its thread has ended$/m)
  expect(await engineProcesses(mooring.dataDir)).toEqual([])
})
