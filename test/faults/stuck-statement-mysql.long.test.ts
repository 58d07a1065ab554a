import { expect, test } from 'vitest'
import { type Answer, codeOf, type Instance } from '../support/api/answers.ts'
import { metricOf } from '../support/deployment/metric.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { openMysql } from '../support/families/family-client.ts'
import { inTime } from '../support/in-time.ts'
import { STUBBORN } from '../support/mysql/stubborn.ts'
import { LATER, SOON } from '../support/patience.ts'

test.each(['mariadb-10.7.4', 'mysql-5.7.38', 'mysql-8.0.29'])(
  'on %s, a statement that nothing ends delays neither a rotation nor the DELETE of its tenant, nor that of a neighbour',
  async (motor) => {
    const args = ['--compatible-motors', '--quota-instances', '2', '--statement-limit-seconds', '30']
    await using mooring = await startMooring({ args })
    const post = (identifier: string): Promise<Answer> =>
      mooring.call('POST', '/v1/instances', { body: { identifier, region: mooring.ready.region, motor } })
    const create = async (identifier: string): Promise<Instance> => {
      const answer = await post(identifier)
      expect(codeOf(answer)).toBe('201 OK')
      return answer.body.data.instance
    }
    const [looping, neighbour] = [await create('looping'), await create('neighbour')]
    const at = ({ id }: Instance) => `/v1/instances/${id}`
    const session = await openMysql(looping)
    session.on('error', () => undefined)
    await session.query('CREATE TABLE t (n INT)')
    await session.query('INSERT INTO t VALUES (1)')
    session.query(`${STUBBORN} FROM t`).catch(() => undefined)

    expect(codeOf(await inTime(mooring.call('POST', `${at(looping)}/password`)))).toBe('200 OK')
    expect(codeOf(await inTime(mooring.call('DELETE', at(neighbour))))).toBe('200 OK')
    expect(codeOf(await inTime(mooring.call('DELETE', at(looping))))).toBe('200 OK')
    expect(codeOf(await mooring.call('GET', at(looping)))).toBe('404 not_found')
    await expect(openMysql(looping)).rejects.toMatchObject({ errno: 1045 })
    await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), SOON).toBe(1)
    await create('other')
    expect(codeOf(await post('another'))).toBe('403 quota_exceeded')

    // Past the bound of statements the server is restarted, and the data are removed.
    await expect.poll(() => metricOf(mooring, 'mooring_discarded_databases'), LATER).toBe(0)
    expect(await metricOf(mooring, 'mooring_database_server_forced_restarts_total')).toBe(1)
    session.destroy()
  },
  600_000,
)
