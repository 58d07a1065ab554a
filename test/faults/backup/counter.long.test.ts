import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { parseWalKey } from '../../../backup/postgresql/catalog/keys.ts'
import { type ArchivedServer, startArchived } from '../../support/backup/archived-server.ts'
import {
  momentOf,
  PREFIX,
  startAgent,
  startRestored,
  type TestAgent,
  testRepository,
  type TestRepository,
  valueOf,
} from '../../support/backup/agents.ts'
import { type Counted, lastRowAt, randomSeconds, startCounter } from '../../support/backup/counter.ts'
import { PATIENCE, SLOW } from '../../support/backup/quick.ts'

interface Marked {
  readonly key: string
  readonly markedAt: number
}

/** Returns two neighbours in the middle. */
function middleOf(segments: readonly Marked[]): readonly [Marked, Marked] {
  const [one, other] = segments.slice(Math.floor(segments.length / 2))
  if (!one || !other) throw new Error('there are too few segments')
  return [one, other]
}

/** A row every 100 ms over dozens of segments of the log, and restores from them. */
describe('a counter', () => {
  let kept: TestRepository
  let server: ArchivedServer
  let agent: TestAgent
  let counted: readonly Counted[]
  beforeAll(async () => {
    kept = await testRepository()
    server = await startArchived('15')
    // A listing is due as soon as the one before is done.
    agent = startAgent(server, { ...kept, schedule: { listMs: 0 } })
    await agent.archiving()
    const client = await server.client()
    await client.query('CREATE TABLE counter (n int PRIMARY KEY)')
    const counter = startCounter((n) => client.query('INSERT INTO counter VALUES ($1)', [n]))
    await pause(12_000)
    counted = await counter.stop()
    await agent.reaches(await momentOf(client))
    return async () => {
      await agent.close()
      await server[Symbol.asyncDispose]()
      await kept[Symbol.asyncDispose]()
    }
  }, SLOW.timeout)

  /** Restores to a moment, and checks that all rows until then are there, and no other. */
  async function expectExact(moment: number): Promise<void> {
    await using copy = await startRestored(server, { ...kept, time: new Date(moment) })
    const rows = (await valueOf(await copy.client(), 'SELECT array_agg(n ORDER BY n) FROM counter')) as readonly number[] | null
    const { atLeast, atMost } = lastRowAt(counted, moment)
    const last = rows?.length ?? 0
    expect(rows ?? [], `restored to ${new Date(moment).toISOString()}`).toEqual(
      Array.from({ length: last }, (_, index) => index + 1),
    )
    expect(last).toBeGreaterThanOrEqual(atLeast)
    expect(last).toBeLessThanOrEqual(atMost)
  }

  /** Segments with a mark, after the first row. */
  async function markedSegments(): Promise<readonly Marked[]> {
    const segments: Marked[] = []
    for await (const { key } of kept.repository.list(`${PREFIX}/wal/`)) {
      const markedAt = parseWalKey(key.slice(PREFIX.length + 1))?.markedAt
      if (markedAt !== undefined && markedAt > (counted[0]?.endedAt ?? 0)) segments.push({ key, markedAt })
    }
    return segments
  }

  test('is exact and without holes in restores to five random seconds', SLOW, async () => {
    for (const moment of randomSeconds(counted)) await expectExact(moment)
  })

  test('cannot be restored behind a segment that another program removed, and exactly before it', SLOW, async () => {
    const segments = await markedSegments()
    expect(segments.length).toBeGreaterThan(10)
    const [{ markedAt: before }, { key, markedAt: hole }] = middleOf(segments)
    await kept.repository.delete([key])
    const holds = (): boolean =>
      agent.state().restoreWindows.some(({ earliest, latest }) => Date.parse(earliest) <= hole && hole <= Date.parse(latest))
    await expect.poll(holds, PATIENCE).toBe(false)
    await expect(startRestored(server, { ...kept, time: new Date(hole) })).rejects.toMatchObject({
      code: 'outside_restore_window',
    })
    await expectExact(before)
    // The next backup begins a window behind the hole.
    await expect.poll(() => Date.parse(agent.state().restoreWindow?.earliest ?? ''), PATIENCE).toBeGreaterThan(hole)
  })
})
