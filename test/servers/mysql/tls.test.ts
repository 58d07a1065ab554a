import mysql from 'mysql2/promise'
import { expect, test } from 'vitest'
import { createCa, issueCertificate, type KeyAlgorithm } from '../../../operator/certificates/local-ca.ts'
import { mysqlAdmin } from '../../../operator/engines/mysql/mysql.ts'
import { credentials, databaseServer, reach, runtimeIn, scratch } from '../../support/operator/process-runtime.ts'
import { onlyInFull } from '../../support/scope.ts'

const TENANT = { name: 'tenant', password: 'password-of-tenant' }

test.each([
  { motor: 'mariadb-10.7.4', family: 'mariadb', refusal: 1045 } as const,
  ...onlyInFull({ motor: 'mysql-8.0.29', family: 'mysql', refusal: 3159 }),
])('a server of $motor requires TLS off loopback, with a certificate of the CA', async ({ motor, family, refusal }) => {
  await using at = await scratch()
  const now = new Date()
  const ca = await createCa(now)
  const certificate = async (key: KeyAlgorithm) => ({
    ...(await issueCertificate({ ca, names: ['127.0.0.1'], now, key })),
    ca: ca.certificate,
  })
  const runtime = await runtimeIn(at.directory, { listen: '0.0.0.0', publicHost: '127.0.0.1', certificate })
  const { admin, port } = await reach(runtime, databaseServer(motor), 'running')
  await using engine = mysqlAdmin({ ...admin, ...credentials }, family)
  await engine.claim(TENANT, { connections: 12 }, {})
  await engine.verify(TENANT)
  const login = { host: '127.0.0.1', port, user: TENANT.name, password: TENANT.password }
  const client = await mysql.createConnection({ ...login, ssl: { ca: ca.certificate } })
  const [rows] = await client.query("SHOW STATUS LIKE 'Ssl_version'")
  await client.end()
  expect(rows).toEqual([{ Variable_name: 'Ssl_version', Value: expect.stringMatching(/^TLSv1\.[23]$/) as string }])
  await expect(mysql.createConnection(login)).rejects.toMatchObject({ errno: refusal })
  const other = await createCa(now)
  await expect(mysql.createConnection({ ...login, ssl: { ca: other.certificate } })).rejects.toThrow()
})
