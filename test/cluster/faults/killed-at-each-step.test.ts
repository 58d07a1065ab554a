// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { PersistentVolumeClaim } from '../../../operator/kubernetes/kinds.ts'
import { childNames, selectorOf } from '../../../operator/server/kubernetes/manifests.ts'
import { isReady } from '../../../store/conditions.ts'
import { keyOf } from '../../../store/port.ts'
import type { Answer } from '../../support/api/answers.ts'
import { SOON } from '../../support/patience.ts'
import { query } from '../../support/postgresql/sql.ts'
import { openTunnelBench, type TunnelBench } from '../tunnels/bench.ts'
import { type FaultBench, openFaultBench } from './bench.ts'
import { mainProcess } from './node-processes.ts'
import { openOwnOperator, type OwnOperator } from './own-operator.ts'
import { KUBECTL_WAIT, LATER } from '../../support/patience.ts'

/** Access to the API, which has one pod, so that this pod has each request. The operator runs on this machine, where a test can kill it. */
let bench: FaultBench
let operator: OwnOperator
let tunnels: TunnelBench
// Everything opened is closed even when a later step fails: other tests need the operators' pods.
const opened = new AsyncDisposableStack()
beforeAll(async () => {
  bench = opened.use(await openFaultBench())
  operator = opened.use(await openOwnOperator(bench.clients))
  tunnels = opened.use(await openTunnelBench())
  opened.defer(() => bench.components.scale('apiserver', 2))
  await bench.components.scale('apiserver', 1)
})
afterAll(() => opened.disposeAsync())

/** Fails unless the claim ends with one database for the request, repeated or not, and with a working password. */
async function expectGranted(identifier: string, answer: Answer | undefined): Promise<void> {
  if (answer) expect([201, 503]).toContain(answer.status)
  const instance = await bench.granted(identifier)
  if (answer?.status === 201) expect(answer.body.data.instance).toEqual(instance)
  expect(await query(instance, 'SELECT current_user AS user')).toEqual([{ user: instance.name }])
  await bench.expectOneOfEach()
}

/** Deletes a new instance during `fault`. Fails unless the instance is deleted and its key is free. */
async function expectDeleted(identifier: string, fault: (remove: () => Promise<Answer>) => Promise<Answer | undefined>) {
  const instance = await bench.granted(identifier)
  const path = `/v1/instances/${instance.id}`
  const answer = await fault(() => bench.editor('DELETE', path))
  if (answer) expect([200, 202]).toContain(answer.status)
  await expect.poll(async () => (await bench.editor('GET', path)).status, LATER).toBe(404)
  await expect(query(instance, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
  expect((await bench.granted(identifier)).id).not.toBe(instance.id)
  await bench.expectOneOfEach()
}

describe('an operator killed', () => {
  test.each(['claim.secret', 'claim.claim', 'claim.verify', 'claim.status'])(
    'at %s is replaced by another that finishes the claim: the request gets one database with a working password',
    async (step) => {
      const identifier = `operator-${step}`
      await expectGranted(identifier, await operator.dyingAt(step, () => bench.create(identifier)))
    },
  )

  test('after adding its finalizer to an instance is replaced by another that creates the database', async () => {
    const metadata = { name: 'applied', namespace: bench.namespace }
    const { region, motor } = bench.deployment.instanceBody()
    const applied = {
      ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'SharedInstance', metadata },
      spec: { identifier: 'applied', region, motor },
    }
    await operator.dyingAt('claim.add-finalizer', () => bench.clients.kubectl(['apply', '--filename', '-'], applied))
    const found = async () => {
      const instance = await bench.engines.store.get(SharedInstance, metadata)
      return instance && isReady(instance)
    }
    await expect.poll(found, LATER).toBe(true)
    await bench.expectOneOfEach()
  })

  test('between a restored Secret and the engine is replaced by another: each answer has a working password', async () => {
    const identifier = 'operator-change.secret'
    const before = await bench.granted(identifier)
    const { store } = bench.engines

    /** Deletes the Secret, waits until the operator has created another, and repeats the request. */
    async function repeatAfterLoss(): Promise<Answer> {
      const { items } = await store.list(SharedInstance, { namespace: bench.namespace })
      const instance = items.find(({ status }) => status?.name === before.name)
      if (!instance) throw new Error('the instance is gone')
      const secret = { namespace: bench.namespace, name: instance.status?.secretRef?.name ?? '' }
      await store.delete(Secret, secret)
      // The sweep finds the loss within a minute, a reconcile at once.
      await store.mergePatch(SharedInstance, keyOf(instance), { metadata: { annotations: { 'example.com/touched': 'yes' } } })
      await vi.waitUntil(() => store.get(Secret, secret), SOON)
      const answer = await bench.create(identifier)
      if (answer.status === 201) expect(await query(answer.body.data.instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
      return answer
    }

    await expectGranted(identifier, await operator.dyingAt('change.secret', repeatAfterLoss))
    expect((await bench.granted(identifier)).password).not.toBe(before.password)
    await expect(query(before, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
  })

  test.each(['delete.drop', 'delete.forget-secret', 'delete.release'])(
    'at %s is replaced by another that finishes the deletion: nothing is left and the key is free',
    async (step) => {
      await expectDeleted(`operator-${step}`, (remove) => operator.dyingAt(step, remove))
    },
  )
})

describe('an operator killed during a step of a tunnel', () => {
  const nameOf = (step: string) => step.replace('.', '-')
  const hostnameOf = (name: string) =>
    tunnels.editor(['get', 'tunnel', name, '--ignore-not-found', '--output', 'jsonpath={.status.hostname}'])

  /** Waits for the hostname in the status of a tunnel and returns it. */
  const drawn = (name: string) =>
    vi.waitFor(async () => {
      const hostname = await hostnameOf(name)
      expect(hostname).not.toBe('')
      return hostname
    }, LATER)

  /** Fails unless each tunnel of the cluster has its certificate and there is no other. */
  async function expectOneCertificateEach(): Promise<void> {
    const { store } = bench.engines
    const wanted = async () => {
      const hostnames = (await store.list(Tunnel)).items.flatMap(({ status }) => status?.hostname ?? [])
      return hostnames.map((hostname) => `tunnel-${hostname}-certificate`).toSorted()
    }
    const there = async () => {
      const { items } = await store.list(Secret, { namespace: SYSTEM_NAMESPACE })
      const names = items.map(({ metadata }) => metadata.name)
      return names.filter((name) => /^tunnel-.*-certificate$/.test(name)).toSorted()
    }
    await vi.waitFor(async () => expect(await there()).toEqual(await wanted()), LATER)
  }

  const answers = (hostname: string, status: number) =>
    vi.waitFor(async () => expect((await tunnels.visit(hostname)).status).toBe(status), LATER)

  test.each(['tunnel.mark', 'tunnel.assign', 'tunnel.obtain'])(
    'at %s is replaced by another that finishes the creation: the tunnel keeps its hostname, has one certificate and is served',
    async (step) => {
      const name = nameOf(step)
      const made = () => Promise.all([drawn(name), tunnels.tunnel(name)])
      const [first, hostname] = await operator.dyingAt(step, made)
      expect(hostname).toBe(first)
      await expectOneCertificateEach()
      tunnels.connect(hostname)
      await answers(hostname, 200)
    },
  )

  test.each(['tunnel.expire', 'tunnel.forget-certificate', 'tunnel.release'])(
    'at %s is replaced by another that finishes the deletion: nothing is left and visitors get 404',
    async (step) => {
      const name = nameOf(step)
      const hostname = await tunnels.tunnel(name)
      const passed = JSON.stringify({ spec: { expiresAt: new Date(Date.now() + 1_000).toISOString() } })
      const end =
        step === 'tunnel.expire'
          ? ['patch', 'tunnel', name, '--type=merge', '--patch', passed]
          : ['delete', 'tunnel', name, '--wait=false']
      await operator.dyingAt(step, async () => {
        await tunnels.editor(end)
        await tunnels.editor(['wait', '--for=delete', `tunnel/${name}`, KUBECTL_WAIT])
      })
      await expectOneCertificateEach()
      await answers(hostname, 404)
    },
  )
})

/** Kills of the API before and after the resource has the requested state. Steps of the operator in between make no difference to the API. */
describe('the API killed', () => {
  async function expectKilledAt(step: string, act: () => Promise<Answer>): Promise<Answer | undefined> {
    const [pod] = await bench.components.pods('apiserver')
    const pid = await mainProcess(pod?.containerId ?? '')
    const answer = await operator.killingAt({ step, pid }, () => act().catch(lost))
    await bench.components.replace('apiserver')
    return answer
  }

  /** Maps a lost connection to undefined. @throws any other error */
  function lost(error: unknown): undefined {
    if (error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'ECONNREFUSED')) return
    throw error
  }

  test.each(['claim.secret', 'claim.status'])('at %s of a POST: the repeated request gets the one database', async (step) => {
    const identifier = `api-${step}`
    await expectGranted(identifier, await expectKilledAt(step, () => bench.create(identifier)))
  })

  test.each(['delete.drop', 'delete.release'])('at %s of a DELETE: the deletion finishes', async (step) => {
    await expectDeleted(`api-${step}`, (remove) => expectKilledAt(step, remove))
  })
})

describe('a database pod', () => {
  const IN_SHARED = ['--namespace', SHARED_NAMESPACE]

  /** Returns the ids of the volumes of one server. Others come and go: a server without instances is deleted after ten minutes. */
  async function volumesOf(server: string): Promise<readonly string[]> {
    const scope = { namespace: SHARED_NAMESPACE, labels: selectorOf(server) }
    return (await bench.engines.store.list(PersistentVolumeClaim, scope)).items.map(({ metadata }) => metadata.uid)
  }

  /** Creates an instance with data. Returns the pod of its server and a check that all data is kept. */
  async function keeper(identifier: string) {
    const instance = await bench.granted(identifier)
    await query(instance, 'CREATE TABLE kept AS SELECT 42 AS answer')
    const { items } = await bench.engines.store.list(SharedInstance, { namespace: bench.namespace })
    const server = items.find(({ status }) => status?.name === instance.name)?.status?.serverRef?.name ?? ''
    const before = await volumesOf(server)
    expect(before).toHaveLength(1)
    return {
      pod: childNames(server).pod,
      expectKept: async () => {
        await expect.poll(() => query(instance, 'SELECT answer FROM kept'), LATER).toEqual([{ answer: 42 }])
        expect(await volumesOf(server)).toEqual(before)
      },
    }
  }

  test.each(['claim.secret', 'claim.claim'])('killed at %s: the claim finishes, and all data is kept', async (step) => {
    const { pod, expectKept } = await keeper(`kept-${step}`)
    const container = 'jsonpath={.status.containerStatuses[0].containerID}'
    const pid = await mainProcess(await bench.clients.kubectl(['get', 'pod', pod, ...IN_SHARED, '--output', container]))
    const identifier = `database-${step}`
    const answer = await operator.killingAt({ step, pid }, () => bench.create(identifier))
    await expectKept()
    await expectGranted(identifier, answer)
  })

  test('deleted during six claims: each claim finishes, and all data is kept', async () => {
    const { pod, expectKept } = await keeper('kept-amid')
    const identifiers = Array.from({ length: 6 }, (_, index) => `amid-${index}`)
    const answering = Promise.all(identifiers.map((identifier) => bench.create(identifier)))
    await bench.clients.kubectl(['delete', 'pod', pod, ...IN_SHARED, '--grace-period=0', '--force'])
    const answers = await answering
    await expectKept()
    for (const [index, identifier] of identifiers.entries()) await expectGranted(identifier, answers[index])
  })
})
