import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { keyFileFor, mongodConf } from './settings.ts'

const SERVER = { listen: '127.0.0.1', port: 27_017, dataDirectory: '/data', keyFile: '/config/keyfile' }

test('a server requires a login, runs no JavaScript, and logs no statement', () => {
  expect(parse(mongodConf(SERVER))).toMatchObject({
    security: { authorization: 'enabled', keyFile: '/config/keyfile', javascriptEnabled: false },
    operationProfiling: { mode: 'off', slowOpSampleRate: 0 },
    systemLog: { quiet: true },
    setParameter: { enableLocalhostAuthBypass: false, diagnosticDataCollectionEnabled: false },
    net: { unixDomainSocket: { enabled: false } },
  })
})

test('a server accepts no compressed message, whose length some versions do not check', () => {
  expect(parse(mongodConf(SERVER))).toMatchObject({ net: { compression: { compressors: 'disabled' } } })
})

test.each([
  { tls: undefined, expected: { mode: 'disabled' } },
  {
    tls: { certificateKeyFile: '/config/server.pem', caFile: '/config/ca.crt' },
    expected: { mode: 'requireTLS', certificateKeyFile: '/config/server.pem', allowConnectionsWithoutCertificates: true },
  },
])('TLS is $expected.mode', ({ tls, expected }) => {
  expect(parse(mongodConf({ ...SERVER, tls }))).toMatchObject({ net: { tls: expected } })
})

test.each([
  { tenants: 50, connections: 1_260 },
  { tenants: 1, connections: 84 },
])('a server for $tenants tenants accepts $connections connections', ({ tenants, connections }) => {
  expect(parse(mongodConf({ ...SERVER, tenants }))).toMatchObject({ net: { maxIncomingConnections: connections } })
})

test('the key file follows from the password, does not contain it, and has the format of a key', () => {
  const key = keyFileFor('secret-of-admin')
  expect(key).toBe(keyFileFor('secret-of-admin'))
  expect(key).not.toBe(keyFileFor('another'))
  expect(key).not.toContain('secret')
  expect(key).toMatch(/^[0-9a-f]{128}$/)
})
