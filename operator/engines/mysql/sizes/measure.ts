import type { EngineAdmin } from '../../engine.ts'
import type { MysqlFamily } from '../catalog.ts'
import type { Session } from '../connection.ts'
import { createOwnSize } from './own-size.ts'

const COUNTERS = [
  'Handler_commit',
  'Handler_rollback',
  'Innodb_buffer_pool_read_requests',
  'Innodb_buffer_pool_reads',
  'Slow_queries',
] as const

const SESSIONS = `
  SELECT COUNT(*) AS connections, COALESCE(SUM(COMMAND IN ('Query', 'Execute') AND TIME >= 1), 0) AS slow
  FROM information_schema.PROCESSLIST WHERE USER = ?`

/**
 * Creates the function that measures the server of one tenant. MariaDB counts the statements of at least 1 s (settings.ts). MySQL counts them only
 * while its slow query log is on, which would show the statements of tenants, so those that run now are returned.
 */
export function createMeasure(connection: { readonly watch: Session }, family: MysqlFamily): EngineAdmin['measure'] {
  const { watch } = connection
  const readSize = createOwnSize(connection, family)

  return async function measure(name) {
    const sizeBytes = await readSize(name)
    if (sizeBytes === undefined) return undefined
    const [sessions] = await watch.query<{ connections: number | string; slow: number | string }>(SESSIONS, [name])
    const rows = await watch.query<{ Variable_name: string; Value: string }>('SHOW GLOBAL STATUS WHERE Variable_name IN (?)', [
      COUNTERS,
    ])
    const counts = new Map(rows.map((row) => [row.Variable_name, Number(row.Value)]))
    const of = (counter: (typeof COUNTERS)[number]): number => counts.get(counter) ?? 0
    return {
      connections: Number(sessions?.connections ?? 0),
      sizeBytes,
      transactions: of('Handler_commit') + of('Handler_rollback'),
      pages: { reads: of('Innodb_buffer_pool_read_requests'), misses: of('Innodb_buffer_pool_reads') },
      slow: family === 'mariadb' ? { total: of('Slow_queries') } : { running: Number(sessions?.slow ?? 0) },
    }
  }
}
