import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { readFile } from 'node:fs/promises'
import { MongoClient } from 'mongodb'
import { describe, expect, test } from 'vitest'
import { addressOf, dialling, TIMEOUTS } from '../../../operator/engines/mongodb/connection.ts'
import { mongodbAdmin } from '../../../operator/engines/mongodb/mongodb.ts'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { serverPaths } from '../../../operator/server/process/files/paths.ts'
import { bareScratch, credentials, databaseServer, reach, recordOf, runtimeIn } from '../../support/operator/process-runtime.ts'

const MOTORS = ['mongodb-5.0.9', 'mongodb-7.0.2'] as const
const TENANT = { name: 'tenant', password: 'password-of-tenant' }
const LIMITS = { connections: 12 }

describe.each(MOTORS)('the process runtime with %s', (motor) => {
  test('starts a server, adopts it with its tenants, shuts it down cleanly and removes it', async () => {
    await using at = await bareScratch()
    const server = databaseServer(motor)
    const paths = serverPaths(at.directory, server.metadata.uid)
    const { admin } = await reach(await runtimeIn(at.directory), server, 'running')
    const before = await recordOf(paths)
    {
      await using engine = mongodbAdmin({ ...admin, ...credentials })
      await engine.claim(TENANT, LIMITS, {})
    }
    // The first runtime is not closed, as after kill -9.
    const second = await runtimeIn(at.directory)
    const adopted = await reach(second, server, 'running')
    expect(await recordOf(paths)).toEqual(before)
    await using engine = mongodbAdmin({ ...adopted.admin, ...credentials })
    await engine.verify(TENANT)
    await second.close()
    expect(await readFile(`${paths.log}/mongod.log`, 'utf8')).toContain('"exitCode":0')
    expect(await (await runtimeIn(at.directory)).remove(server)).toBe(true)
  })

  test('starts a server again on another port when its own is taken', async () => {
    await using at = await bareScratch()
    const server = databaseServer(motor)
    const first = await runtimeIn(at.directory)
    const { port, admin } = await reach(first, server, 'running')
    {
      await using engine = mongodbAdmin({ ...admin, ...credentials })
      await engine.claim(TENANT, LIMITS, {})
    }
    await first.close()
    // The server asks the former address whether it is itself there.
    const taken = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1')
    await once(taken, 'listening')
    const moved = await reach(await runtimeIn(at.directory), server, 'running')
    expect(moved.port).not.toBe(port)
    await using engine = mongodbAdmin({ ...moved.admin, ...credentials })
    await engine.verify(TENANT)
    await engine.claim({ ...TENANT, name: 'second' }, LIMITS, {})
    taken.close()
  })

  test('requires TLS off loopback, and serves a renewed certificate after an adoption', async () => {
    await using at = await bareScratch()
    const server = databaseServer(motor)
    const traits = { listen: '0.0.0.0', publicHost: '127.0.0.1' }
    const now = new Date()
    const ca = await createCa(now)
    const issue = async () => ({ ...(await issueCertificate({ ca, names: ['127.0.0.1'], now })), ca: ca.certificate })
    const [old, renewed] = [await issue(), await issue()]
    const { admin } = await reach(await runtimeIn(at.directory, { ...traits, certificate: () => old }), server, 'running')
    expect(await servedOn(admin)).toBe(new X509Certificate(old.certificate).fingerprint256)
    await using plain = new MongoClient(addressOf(admin), { ...dialling({}, TIMEOUTS), serverSelectionTimeoutMS: 500 })
    await expect(plain.connect()).rejects.toThrow()
    {
      await using engine = mongodbAdmin({ ...admin, ...credentials })
      await engine.claim(TENANT, LIMITS, {})
      await engine.verify(TENANT)
    }
    const second = await reach(await runtimeIn(at.directory, { ...traits, certificate: () => renewed }), server, 'running')
    expect(await servedOn(second.admin)).toBe(new X509Certificate(renewed.certificate).fingerprint256)
  })

  test('reports another password than the server has', async () => {
    await using at = await bareScratch()
    const server = databaseServer(motor)
    await reach(await runtimeIn(at.directory), server, 'running')
    const state = await reach(await runtimeIn(at.directory), server, 'failed', 'another')
    expect(state).toEqual({ phase: 'failed', reason: 'Crashed', message: "it rejects the admin's login (18)" })
  })

  test('kills a server that hangs, and starts it again', async () => {
    await using at = await bareScratch()
    const server = databaseServer(motor)
    const runtime = await runtimeIn(at.directory, { hangCheck: { everyMs: 100, failures: 1 } })
    await reach(runtime, server, 'running')
    const { process: before } = await recordOf(serverPaths(at.directory, server.metadata.uid))
    process.kill(before.pid, 'SIGSTOP')
    await reach(runtime, server, 'failed')
    const { admin } = await reach(runtime, server, 'running')
    await using engine = mongodbAdmin({ ...admin, ...credentials })
    expect((await engine.catalog()).leftovers).toEqual([])
  })
})

/** Returns the fingerprint of the certificate that a server shows. */
async function servedOn({ host, port, ca }: { host: string; port: number; ca?: string | undefined }): Promise<string> {
  const socket = connectTls({ host, port, ca, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}
