import { readdir } from 'node:fs/promises'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { startArchived } from '../../support/backup/archived-server.ts'
import { startAgent, testRepository } from '../../support/backup/agents.ts'
import { SLOW } from '../../support/backup/quick.ts'

interface Answer {
  readonly rows: readonly { readonly file?: string }[]
}

/** Returns a client that calls `late` with the name of each segment that it closes, before it returns the server's answer. */
function withLateAnswers(client: pg.Client, late: (file: string) => Promise<void>): pg.Client {
  const query = client.query.bind(client) as (...query: unknown[]) => Promise<Answer>
  const lateQuery = async (...args: unknown[]): Promise<Answer> => {
    const answer = await query(...args)
    if (JSON.stringify(args).includes('pg_switch_wal')) await late(answer.rows[0]?.file ?? '')
    return answer
  }
  return Object.assign(client, { query: lateQuery })
}

test('a backup finishes although segments are in the repository before the server names them to the agent', SLOW, async () => {
  await using kept = await testRepository()
  await using server = await startArchived('15')
  const late: string[] = []
  const connect = async (): Promise<pg.Client> =>
    withLateAnswers(await server.files.connect(), async (file) => {
      if (late.length >= 3) return
      late.push(file)
      const names = (): Promise<string[]> => readdir(kept.directory, { recursive: true })
      await expect.poll(async () => (await names()).some((name) => name.includes(`/${file}.`))).toBe(true)
    })
  await using agent = startAgent({ ...server, files: { ...server.files, connect } }, kept)
  await agent.archiving()
  expect(late).toHaveLength(3)
  const client = await server.client()
  await client.query('CREATE TABLE later AS SELECT 1 AS n')
  const { rows } = await client.query<{ at: Date }>('SELECT clock_timestamp() AS at')
  await agent.reaches(rows[0]?.at ?? new Date(Number.NaN))
})
