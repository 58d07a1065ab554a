import { expect, test } from 'vitest'
import { codeOf } from '../support/api/answers.ts'
import { mainProcesses } from '../support/deployment/data-directory.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { clientOf } from '../support/families/family-client.ts'

test.each([
  { motor: 'postgresql-14.4.0', version: '14.5' },
  { motor: 'mariadb-10.7.4', version: '10.11.19' },
  { motor: 'mysql-8.0.29', version: '8.0.15' },
  { motor: 'mysql-5.7.38', version: '5.7.22' },
  { motor: 'mongodb-5.0.9', version: '5.0.32' },
])('the first request for $motor starts its server', async ({ motor, version }) => {
  await using mooring = await startMooring({ args: ['--compatible-motors'] })
  const body = { identifier: 'cold', region: mooring.ready.region, motor }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  expect(codeOf(answer)).toBe('201 OK')
  const { instance } = answer.body.data
  expect(instance).toMatchObject({ motor, engineVersion: version })
  expect(await clientOf(motor).user(instance)).toBe(instance.user)
  expect(await mainProcesses(mooring.dataDir)).toHaveLength(2)
})
