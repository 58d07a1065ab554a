import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { MOTORS, partsOf } from '../../crds/motor.ts'
import type { Instance } from '../support/api/answers.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { clientOf } from '../support/families/family-client.ts'
import { clientsOf } from './setup/commands.ts'
import { KUBECTL_WAIT } from '../support/patience.ts'

/**
 * Databases of MySQL, MariaDB and MongoDB in pods. Their images are stand-ins (images/engines): the nearest servers that a package registry
 * has, under the names and with the layout of the official images.
 */

/** Motors with the versions of their stand-ins. */
const VERSIONS: Readonly<Record<string, string>> = {
  'mysql-5.7.38': '5.7.22',
  'mysql-8.0.29': '8.0.15',
  'mariadb-10.7.4': '10.11.19',
  'mongodb-5.0.9': '5.0.32',
  'mongodb-7.0.2': '6.0.27',
}
/** Motor whose region does without TLS (setup/release.ts). */
const PLAIN = 'mysql-5.7.38'

const cluster = clientsOf(process.env.KUBECONFIG ?? '')
const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const Binding = z.object({ data: z.record(z.string(), z.base64()) })

/** Reads the Secret of a SharedInstance. */
async function bindingOf(name: string, namespace: string): Promise<Readonly<Record<string, string>>> {
  const { data } = Binding.parse(
    JSON.parse(await cluster.kubectl(['get', 'secret', name, '--namespace', namespace, '-o', 'json'])),
  )
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]))
}

describe.each(MOTORS.filter((motor) => partsOf(motor).family !== 'postgresql'))('a database of %s', (motor) => {
  const { family } = partsOf(motor)
  const client = clientOf(motor)
  const change = (id: string, verb: string, what: string, body?: object) =>
    expectSuccess(acme.as('editor')(verb, `/v1/instances/${id}${what}`, body && { body }))

  test('has an address on a node, and requires TLS unless its region does not', async () => {
    const instance = await acme.instance({ motor })
    expect(instance).toMatchObject({ motor, engineVersion: VERSIONS[motor], host: await cluster.nodeAddress() })
    expect(instance.port).toBeGreaterThanOrEqual(30_000)
    expect(instance.tls.required).toBe(motor !== PLAIN)
    expect(await client.user(instance)).toBe(instance.user)
    const without = { ...instance, tls: { required: false, ca: null } }
    if (instance.tls.required) await expect(client.items(without)).rejects.toThrow()
  })

  test('is created by kubectl, with the keys of a service binding', async () => {
    const namespace = `${acme.organization}--${acme.namespace}`
    const metadata = { name: 'by-kubectl', namespace }
    const spec = { identifier: 'by kubectl', region: deployment.installation.region.id, motor }
    const manifest = { apiVersion: 'mooring.dev/v1alpha1', kind: 'SharedInstance', metadata, spec }
    const there = ['sharedinstance/by-kubectl', '--namespace', namespace]
    await cluster.kubectl(['apply', '--filename', '-'], manifest)
    await cluster.kubectl(['wait', '--for=condition=Ready', ...there, KUBECTL_WAIT])
    const secret = await cluster.kubectl(['get', ...there, '--output', 'jsonpath={.status.secretRef.name}'])
    const { host = '', port, username = '', password = '', database = '', uri, ...rest } = await bindingOf(secret, namespace)
    expect(rest).toEqual({ type: family, provider: 'mooring', 'ca.crt': deployment.installation.ca })
    expect(uri).toMatch(
      new RegExp(`^${family === 'mongodb' ? 'mongodb' : 'mysql'}://${username}:${password}@${host}:${port}/${database}`),
    )
    expect(/[?&](?:tls|ssl-mode)=/.test(uri ?? '')).toBe(motor !== PLAIN)
    const tls = { required: motor !== PLAIN, ca: deployment.installation.ca }
    const instance = { host, port: Number(port), user: username, password, name: database, tls } as Instance
    expect(await client.user(instance)).toBe(username)
    await cluster.kubectl(['delete', ...there])
    await expect(client.user(instance)).rejects.toSatisfy((error) => client.isRefusal(error))
  })

  test('can be rotated, disabled, reset, copied and deleted', async () => {
    const before = await acme.instance({ motor })
    await client.add(before, 'kept')
    const rotated = (await change(before.id, 'POST', '/password')).body.data.instance
    await expect(client.items(before)).rejects.toSatisfy((error) => client.isRefusal(error))
    expect(await client.items(rotated)).toEqual(['kept'])
    const copy = await acme.instance({ motor, template: before.id })
    expect(await client.items(copy)).toEqual(['kept'])
    await change(before.id, 'PATCH', '', { isEnabled: false })
    await expect(client.items(rotated)).rejects.toSatisfy((error) => client.isRefusal(error))
    await change(before.id, 'PATCH', '', { isEnabled: true })
    await change(before.id, 'POST', '/reset')
    expect(await client.items(rotated)).toEqual([])
    await change(before.id, 'DELETE', '')
    await expect(client.items(rotated)).rejects.toSatisfy((error) => client.isRefusal(error))
    expect(await client.items(copy)).toEqual(['kept'])
  })
})
