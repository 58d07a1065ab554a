import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { createEmbeddedStore } from '../../store/embedded.ts'
import { temporaryDir } from '../support/store/temporary-store.ts'

const program = fileURLToPath(new URL('../support/store/endless-writer.ts', import.meta.url))

/**
 * Last line of the writer about each name: its acknowledged resourceVersion, `deleted`, or `deleting` for an unacknowledged deletion. An
 * object in state `deleting` may exist or not.
 */
type Printed = Map<string, number | 'deleting' | 'deleted'>

/** Runs the writer on the file until it has printed `lines` lines, then kills it. Returns its output. */
async function killedAfter(lines: number, path: string, prefix: string): Promise<Printed> {
  const child = spawn(process.execPath, [program, path, prefix], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const printed: Printed = new Map()
  let count = 0
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line may be incomplete.
    const [, act, name = '', revision] = /^(put|deleting|deleted) (\S+)(?: (\d+))?\.$/.exec(line) ?? []
    if (act === 'put') printed.set(name, Number(revision))
    else if (act === 'deleting' || act === 'deleted') printed.set(name, act)
    count += 1
    if (count === lines) {
      await expect(createEmbeddedStore({ path })).rejects.toMatchObject({ code: 'locked' })
      child.kill('SIGKILL')
    }
  }
  expect(await exit).toEqual([null, 'SIGKILL'])
  return printed
}

test('acknowledged writes survive kill -9', async () => {
  await using dir = await temporaryDir()
  const printed: Printed = new Map()
  for (const [round, lines] of [50, 400, 1500].entries()) {
    for (const [name, state] of await killedAfter(lines, dir.path, `r${round}`)) printed.set(name, state)
    await using store = await createEmbeddedStore(dir)
    const { items, resourceVersion } = await store.list(SharedInstance)
    const found = new Map(items.map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]))
    const lost = [...printed].filter(([name, state]) => typeof state === 'number' && (found.get(name) ?? 0) < state)
    const undead = [...printed].filter(([name, state]) => state === 'deleted' && found.has(name))
    expect({ lost, undead }).toEqual({ lost: [], undead: [] })
    expect(Math.max(...found.values())).toBeLessThanOrEqual(Number(resourceVersion))
  }
  expect(printed.size).toBeGreaterThan(500)
})
