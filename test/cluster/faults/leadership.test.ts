// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Lease } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { type AuditMark, openAuditLog } from '../../support/api/audit-log.ts'
import { query } from '../../support/postgresql/sql.ts'
import { type FaultBench, openFaultBench } from './bench.ts'
import { LATER } from '../../support/patience.ts'

let bench: FaultBench
const audit = openAuditLog()
beforeAll(async () => {
  bench = await openFaultBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

/** Returns the name of the pod whose operator is leader. */
async function leader(): Promise<string> {
  const lease = await bench.engines.store.get(Lease, { namespace: SYSTEM_NAMESPACE, name: 'mooring-operator' })
  return lease?.spec.holderIdentity?.split('_')[0] ?? ''
}

/** Returns the pods of operators that wrote since the mark, in order of time, consecutive writes of one pod counted once. */
async function reigns(since: AuditMark, what = /./): Promise<readonly string[]> {
  const writes = (await audit.writesSince(since)).filter(({ code, resource }) => code < 300 && what.test(resource))
  const pods = writes.flatMap(({ pod }) => (pod?.startsWith('mooring-operator-') ? [pod] : []))
  return pods.filter((pod, index) => pod !== pods[index - 1])
}

/** Resolves when the operator of the pod has restarted and both operators are ready. */
async function backAgain(pod: string, restarts: number): Promise<void> {
  await expect
    .poll(async () => {
      const pods = await bench.components.pods('operator')
      return pods.every(({ ready }) => ready) && (pods.find(({ name }) => name === pod)?.restarts ?? 0) > restarts
    }, LATER)
    .toBe(true)
}

test('the other operator takes over after a kill of the leader and answers the waiting request', async () => {
  const [first, since] = [await leader(), await audit.mark()]
  const [pid, before] = [await bench.components.process('operator', first), await bench.components.pods('operator')]
  await expect.poll(() => reigns(since), LATER).toEqual([first])
  process.kill(pid, 'SIGKILL')
  const answering = bench.create('bereft')
  await expect.poll(() => reigns(since, /^secrets$/), LATER).toHaveLength(1)
  expect((await answering).status).toBe(201)
  expect(await query(await bench.granted('bereft'), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  await backAgain(first, before.find(({ name }) => name === first)?.restarts ?? 0)
  expect(await reigns(since)).toEqual([first, await leader()])
  await bench.expectOneOfEach()
})

test('a leader suspended during claims writes nothing after the other is leader, and each claim is made once', async () => {
  const [first, since] = [await leader(), await audit.mark()]
  const [pid, before] = [await bench.components.process('operator', first), await bench.components.pods('operator')]
  const names = Array.from({ length: 8 }, (_, index) => `held-up-${index}`)
  const answering = Promise.all(names.map((name) => bench.create(name)))
  await expect.poll(() => reigns(since), LATER).toEqual([first])
  process.kill(pid, 'SIGSTOP')
  await expect.poll(leader, LATER).not.toBe(first)
  for (const { status } of await answering) expect([201, 503]).toContain(status)
  process.kill(pid, 'SIGCONT')
  await backAgain(first, before.find(({ name }) => name === first)?.restarts ?? 0)
  for (const name of names) expect(await query(await bench.granted(name), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  expect(await reigns(since)).toEqual([first, await leader()])
  await bench.expectOneOfEach()
})
