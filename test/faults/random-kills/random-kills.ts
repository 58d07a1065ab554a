import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFailed, test } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import { sendSignal } from '../../../operator/server/process/spawn/proc.ts'
import { adminLogins, mainProcesses, tenantsListed, tenantsOf } from '../../support/deployment/data-directory.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { Worker } from './life.ts'
import { LATER } from '../../support/patience.ts'

/** Time for which they are killed; longer by hand. */
const KILLING_MS = Number(process.env.MOORING_TEST_KILLING_MS ?? 20_000)
/** Pause between two kills, in ms: sometimes too short for a server to start. */
const PAUSES = [300, 3_000] as const
const WORKERS = 4
const UNLIMITED = ['write', 'read'].flatMap((what) => [`--${what}-rate`, '100000', `--${what}-burst`, '100000'])

type Victim = 'mooring' | 'servers'

/** Chooses at random, but the second victim is not the first: on a busy machine there may be few kills. */
function nextVictim(kills: Readonly<Record<Victim, number>>): Victim {
  if ((kills.mooring === 0) === (kills.servers === 0)) return randomInt(2) === 0 ? 'mooring' : 'servers'
  return kills.mooring === 0 ? 'mooring' : 'servers'
}

/** Kills Mooring and the server of a motor at random while instances are created, changed and deleted. */
export function killAtRandom(motor: Motor): void {
  const client = clientOf(motor)

  test(
    `after random kills of Mooring and of ${motor}, every instance works with its data and nothing is left over`,
    async () => {
      const args = ['--compatible-motors', '--warm', motor, ...UNLIMITED]
      await using started = new AsyncDisposableStack()
      const first = started.use(await startMooring({ args }))
      let living: Mooring = first
      let output = ''
      onTestFailed(() => void process.stderr.write((output + living.output()).slice(-20_000)))

      async function killMooring(): Promise<void> {
        const ended = once(living.process, 'exit')
        living.process.kill('SIGKILL')
        await ended
        output += living.output()
        living = started.use(await startMooring({ args, dataDir: first.dataDir }))
      }
      async function killServers(): Promise<void> {
        for (const server of await mainProcesses(first.dataDir)) await sendSignal(server, 'SIGKILL')
      }

      const deadline = performance.now() + KILLING_MS
      const isOver = (): boolean => performance.now() > deadline
      const workers = Array.from(
        { length: WORKERS },
        (_, index) =>
          new Worker({
            ...{ name: `worker-${index}`, motor, region: first.ready.region, isOver },
            call: (...request) => living.call(...request),
          }),
      )
      const kills = { mooring: 0, servers: 0 }
      async function kill(): Promise<void> {
        while (!isOver()) {
          await delay(randomInt(...PAUSES))
          const whom = nextVictim(kills)
          kills[whom] += 1
          await (whom === 'mooring' ? killMooring() : killServers())
        }
      }
      await Promise.all([kill(), ...workers.map((worker) => worker.run())])

      const lives = workers.flatMap((worker) => worker.lives)
      expect(Math.min(kills.mooring, kills.servers, ...workers.map(({ count }) => count))).toBeGreaterThan(0)
      for (const { instance, kept, doubtful } of lives) {
        await expect.poll(() => client.user(instance).catch(String), LATER).toBe(instance.user)
        const items = await client.items(instance)
        expect(items).toEqual(expect.arrayContaining(kept))
        expect([...kept, ...doubtful]).toEqual(expect.arrayContaining([...items]))
      }
      const { body } = await living.call('GET', '/v1/instances?limit=200')
      expect(body.data.instances.map(({ id }) => id).toSorted()).toEqual(lives.map(({ instance }) => instance.id).toSorted())
      await expect.poll(() => tenantsOf(first.dataDir), LATER).toEqual(await tenantsListed(living))
      expect(await mainProcesses(first.dataDir)).toHaveLength((await adminLogins(first.dataDir)).length)
    },
    KILLING_MS + 180_000,
  )
}
