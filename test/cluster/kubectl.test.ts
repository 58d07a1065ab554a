import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { clientsOf, run } from './setup/commands.ts'
import { type Member, memberOf, adopted } from './setup/tenant.ts'
import { forwardPort } from '../support/deployment/cluster.ts'
import { KUBECTL_WAIT } from '../support/patience.ts'

/** Databases with kubectl and psql only, as an editor of one tenant's namespace. */

const admin = clientsOf(process.env.KUBECONFIG ?? '')
const ORGANIZATION = `kubectl-${Date.now().toString(36)}`
const TENANT = `${ORGANIZATION}--prod`
const { region, motor } = inject('installation')

let editor: Member
let viewer: Member
/** Directory for the CA files of psql. */
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mooring-kubectl-'))
  await admin.kubectl(['create', 'namespace', TENANT])
  const labels = [`mooring.dev/organization=${ORGANIZATION}`, 'mooring.dev/namespace=prod']
  await admin.kubectl(['label', 'namespace', TENANT, ...labels])
  await adopted(admin.kubectl, TENANT)
  editor = await memberOf(admin, { namespace: TENANT, role: 'editor' })
  viewer = await memberOf(admin, { namespace: TENANT, role: 'viewer' })
})

afterAll(async () => {
  await admin.kubectl(['delete', 'tenantnamespace', TENANT, '--ignore-not-found', '--wait=false'])
  await admin.kubectl(['delete', 'organization', ORGANIZATION, '--ignore-not-found', '--wait=false'])
  await editor[Symbol.asyncDispose]()
  await viewer[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

const kubectl: Member['kubectl'] = (args, input) => editor.kubectl(args, input)

const instance = (name: string, spec: object) => ({
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'SharedInstance',
  metadata: { name },
  spec: { identifier: name, region: region.id, motor, ...spec },
})
const apply = (name: string, spec: object = {}) => kubectl(['apply', '--filename', '-'], instance(name, spec))
const ready = (name: string) => kubectl(['wait', '--for=condition=Ready', `sharedinstance/${name}`, KUBECTL_WAIT])
const change = (name: string, spec: object) =>
  kubectl(['patch', 'sharedinstance', name, '--type', 'merge', '--patch', JSON.stringify({ spec })])
const read = (name: string, path: string) => kubectl(['get', 'sharedinstance', name, '--output', `jsonpath={${path}}`])

const Credentials = z.object({ data: z.object({ uri: z.base64(), 'ca.crt': z.base64() }) })

interface Login {
  readonly uri: string
  /** Path of the CA file that verifies the server. */
  readonly ca: string
}

/** Reads the login of psql from the Secret that the status names. */
async function loginOf(name: string): Promise<Login> {
  const secret = await kubectl(['get', 'secret', await read(name, '.status.secretRef.name'), '--output', 'json'])
  const { data } = Credentials.parse(JSON.parse(secret))
  const ca = join(directory, `${name}.pem`)
  await writeFile(ca, Buffer.from(data['ca.crt'], 'base64'))
  return { uri: Buffer.from(data.uri, 'base64').toString(), ca }
}

const psql = ({ uri, ca }: Login, sql: string) =>
  run({ file: 'psql', args: ['-X', '-At', '-c', sql, uri.replace('sslrootcert=ca.crt', `sslrootcert=${ca}`)] })

test('an applied instance works with its Secret, and can be disabled, enabled, rotated, reset and deleted', async () => {
  await apply('life')
  await ready('life')
  const first = await loginOf('life')
  expect(await psql(first, 'CREATE TABLE kept AS SELECT 42 AS answer; SELECT answer FROM kept')).toBe('SELECT 1\n42')

  await change('life', { enabled: false })
  await kubectl(['wait', '--for=jsonpath={.status.isEnabled}=false', 'sharedinstance/life', KUBECTL_WAIT])
  expect(await kubectl(['get', 'sharedinstance', 'life', '--no-headers'])).toContain(' Disabled ')
  await expect(psql(first, 'SELECT 1')).rejects.toThrow(/not permitted to log in/)

  await change('life', { enabled: true })
  await ready('life')
  expect(await psql(first, 'SELECT answer FROM kept')).toBe('42')

  await change('life', { passwordVersion: 2 })
  await ready('life')
  const second = await loginOf('life')
  await expect(psql(first, 'SELECT 1')).rejects.toThrow(/password authentication failed/)
  expect(await psql(second, 'SELECT answer FROM kept')).toBe('42')

  await change('life', { resetVersion: 1 })
  await ready('life')
  expect(await psql(second, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`)).toBe('0')

  // kubectl returns when the resource is gone, and the operator removes the resource only after the database.
  await kubectl(['delete', 'sharedinstance', 'life', KUBECTL_WAIT])
  await expect(psql(second, 'SELECT 1')).rejects.toThrow(/password authentication failed/)
  await expect.poll(() => admin.kubectl(['get', 'secrets', '--namespace', TENANT, '--output', 'name'])).toBe('')
})

test('a drain may evict one database server at a time', async () => {
  const allowed = '--for=jsonpath={.status.disruptionsAllowed}=1'
  await admin.kubectl(['wait', 'poddisruptionbudget/mooring-databases', '--namespace', 'mooring-shared', allowed, KUBECTL_WAIT])
})

test('psql verifies a server behind kubectl port-forward', async () => {
  await apply('forwarded')
  await ready('forwarded')
  const { uri, ca } = await loginOf('forwarded')
  const object = `service/${await read('forwarded', '.status.serverRef.name')}`
  await using forwarding = forwardPort(admin, { namespace: 'mooring-shared', object, port: 5432 })
  // The documented change of the connection string.
  const local = uri.replace(/@[^/]*/, `@localhost:${await forwarding.port}`)
  expect(local).toContain('sslmode=verify-full')
  expect(await psql({ uri: local, ca }, 'SELECT 42')).toBe('42')
})

test('an instance with a template starts as its copy, and is deleted when it expires', async () => {
  await apply('template')
  await ready('template')
  await psql(await loginOf('template'), 'CREATE TABLE t AS SELECT 7 AS answer')
  await apply('copy', { templateRef: { name: 'template' } })
  await ready('copy')
  expect(await psql(await loginOf('copy'), 'SELECT answer FROM t')).toBe('7')
  await change('copy', { expiresAt: new Date().toISOString() })
  await kubectl(['wait', '--for=delete', 'sharedinstance/copy', KUBECTL_WAIT])
})

/** Creates a Region that runs no motor. */
async function emptyRegion(): Promise<{ readonly id: string } & AsyncDisposable> {
  const id = crypto.randomUUID()
  const name = `empty-${id}`
  const spec = { id, regionId: 2_000_000_000, name, motors: [] }
  await admin.kubectl(['apply', '--filename', '-'], {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Region',
    // The number of its instances, which keeps it from being deleted, is some seconds old.
    metadata: { name, annotations: { 'mooring.dev/allow-deletion': 'true' } },
    spec,
  })
  return {
    id,
    [Symbol.asyncDispose]: async () => {
      await kubectl(['delete', 'sharedinstance', 'failing'])
      await admin.kubectl(['delete', 'region', name])
    },
  }
}

test('a failure is reported as one Event, which members see, despite repeated failures', async () => {
  await using other = await emptyRegion()
  await apply('failing', { region: other.id })
  const because = `this region does not run ${motor}`
  for (let round = 1; round <= 12; round++) await change('failing', { identifier: `failing ${round}` })
  const observed = `--for=jsonpath={.status.observedGeneration}=${await read('failing', '.metadata.generation')}`
  await kubectl(['wait', observed, 'sharedinstance/failing', KUBECTL_WAIT])
  await expect(kubectl(['wait', '--for=condition=Ready', 'sharedinstance/failing', '--timeout=1s'])).rejects.toThrow(/timed out/)
  for (const member of [editor, viewer]) {
    await expect
      .poll(() => member.kubectl(['describe', 'sharedinstance', 'failing']))
      .toMatch(new RegExp(`Warning +UnsupportedMotor .*${because}`))
    const events = await member.kubectl(['get', 'events', '--field-selector', 'involvedObject.name=failing', '--no-headers'])
    expect(events.split('\n')).toHaveLength(1)
  }
})

test('an editor cannot list Secrets, write a status or use other namespaces; a viewer cannot read Secrets or write', async () => {
  await apply('guarded')
  await ready('guarded')
  const secret = await read('guarded', '.status.secretRef.name')
  const lie = ['patch', 'sharedinstance', 'guarded', '--type', 'merge', '--patch', '{"status":{"host":"evil.example"}}']
  for (const args of [
    ['get', 'secrets'],
    [...lie, '--subresource', 'status'],
    ['get', 'sharedinstances', '--namespace', 'default'],
    ['get', 'pods', '--namespace', 'mooring-shared'],
    ['get', 'mooring', '--all-namespaces'],
  ]) {
    await expect(kubectl(args)).rejects.toThrow(/Forbidden|forbidden/)
  }
  // The API server ignores status fields in writes of the main resource (subresource "status").
  await kubectl(lie)
  expect(await read('guarded', '.status.host')).not.toBe('evil.example')
  await expect(viewer.kubectl(['get', 'secret', secret])).rejects.toThrow(/forbidden/)
  await expect(viewer.kubectl(['delete', 'sharedinstance', 'guarded'])).rejects.toThrow(/forbidden/)
  expect(await viewer.kubectl(['get', 'sharedinstance', 'guarded', '--output', 'name'])).toBe(
    'sharedinstance.mooring.dev/guarded',
  )
})
