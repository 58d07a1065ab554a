import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { openSqliteJournal, type SqliteJournal } from '../../journal/sqlite.ts'
import { openTemporaryJournal, silent } from '../support/journal/temporary-journal.ts'

const program = fileURLToPath(new URL('../support/journal/endless-sqlite-writer.ts', import.meta.url))
const tunnel = 'crash'
const namespace = 'crash'

type Said = Record<'request' | 'connect' | 'disconnect' | 'audit', string[]>

/** Runs the writer on the file until it has printed `lines` lines, then kills it. Adds its output to `said`. */
async function killedAfter(lines: number, path: string, said: Said): Promise<void> {
  const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  let count = 0
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line may be truncated.
    const [, what, id = ''] = /^(request|connect|disconnect|audit) (\S+)\.$/.exec(line) ?? []
    if (what) said[what as keyof Said].push(id)
    count += 1
    if (count === lines) child.kill('SIGKILL')
  }
  expect(await exit).toEqual([null, 'SIGKILL'])
}

async function everyPage<R extends { readonly id: string }>(
  read: (before: string | undefined) => Promise<readonly R[]>,
): Promise<R[]> {
  const all: R[] = []
  for (;;) {
    const page = await read(all.at(-1)?.id)
    if (page.length === 0) return all
    all.push(...page)
  }
}

async function contentsOf(journal: SqliteJournal) {
  const limit = 5_000
  return {
    requests: await everyPage((before) => journal.requests({ tunnel }, { limit, before })),
    connections: await everyPage((before) => journal.connections({ tunnel, refused: true }, { limit, before })),
    audit: await everyPage((before) => journal.auditEntries({ namespace }, { limit, before })),
  }
}

const missing = (said: readonly string[], found: readonly { readonly id: string }[]) => {
  const ids = new Set(found.map(({ id }) => id))
  return said.filter((id) => !ids.has(id))
}

test('records stored before kill -9 are kept and summed up, also after repeated kills', async () => {
  await using place = await openTemporaryJournal()
  await place.journal[Symbol.asyncDispose]()
  const said: Said = { request: [], connect: [], disconnect: [], audit: [] }
  for (const lines of [50, 500, 3_000]) {
    await killedAfter(lines, place.path, said)
    await using journal = await openSqliteJournal({ path: place.path, log: silent })
    const { requests, connections, audit } = await contentsOf(journal)
    expect(missing(said.request, requests)).toEqual([])
    expect(missing([...said.connect, ...said.disconnect], connections)).toEqual([])
    expect(missing(said.audit, audit)).toEqual([])
    const stats = await journal.stats(tunnel, { from: Date.now() - 3_600_000, to: Date.now() + 60_000 })
    expect(stats.requests).toBe(requests.length)

    // The next start finds and closes the sessions of a killed edge.
    const ended = new Set(connections.filter(({ type }) => type === 'disconnect').map(({ sessionId }) => sessionId))
    const open = connections.filter(({ type, sessionId }) => type === 'connect' && !ended.has(sessionId))
    const found = await journal.openSessions()
    expect(found.map(({ id }) => id).sort()).toEqual(open.map(({ id }) => id).sort())
  }
  expect(said.request.length).toBeGreaterThan(1_000)
})
