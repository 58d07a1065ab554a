import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Lease, Namespace } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { instance, unique } from '../conformance/store/test-store.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { type ControlPlane, startControlPlane, eventually } from './support/control-plane.ts'

let plane: ControlPlane
let store: KubernetesStore
const namespace = unique()
beforeAll(async () => {
  plane = await startControlPlane()
  store = plane.store()
  await store.create(Namespace, { metadata: { name: namespace } })
})
afterAll(() => plane[Symbol.asyncDispose]())

interface Candidate extends AsyncDisposable {
  readonly identity: string
  readonly child: ChildProcess
  /** Lines that the process has printed so far. */
  readonly lines: readonly string[]
  leads(): boolean
}

const PROGRAM = fileURLToPath(new URL('support/candidate.ts', import.meta.url))

/** Starts a process that takes part in the election for the lease `name`. */
function candidate(identity: string, name: string): Candidate {
  const env = { ...process.env, KUBECONFIG: plane.kubeconfig }
  const child = spawn(process.execPath, [PROGRAM, identity, namespace, name], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  return {
    identity,
    child,
    lines,
    leads: () => lines.includes('leads'),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Identities of the writers in order of time, consecutive writes of one candidate counted once. */
function reigns(candidates: readonly Candidate[]): string[] {
  const acts = candidates.flatMap(({ identity, lines }) =>
    lines.flatMap((line) => (line.startsWith('acts ') ? [{ identity, at: BigInt(line.slice(5)) }] : [])),
  )
  const inOrder = acts.sort((a, b) => Number(a.at - b.at)).map(({ identity }) => identity)
  return inOrder.filter((identity, index) => identity !== inOrder[index - 1])
}

async function twoCandidates(name: string): Promise<readonly [Candidate, Candidate]> {
  await store.create(SharedInstance, instance({ namespace, name }))
  const [a, b] = [candidate('a', name), candidate('b', name)]
  await eventually(() => a.leads() || b.leads())
  return a.leads() ? [a, b] : [b, a]
}

const acts = ({ lines }: Candidate): boolean => lines.some((line) => line.startsWith('acts '))

test('the other candidate becomes leader after the leader is killed, and not before', async () => {
  const pair = await twoCandidates('killed')
  await using leader = pair[0]
  await using other = pair[1]
  await eventually(() => acts(leader))
  leader.child.kill('SIGKILL')
  await eventually(() => acts(other))
  expect(reigns(pair)).toEqual([leader.identity, other.identity])
})

test('a leader releases its lease on SIGTERM and exits with code 0', async () => {
  const pair = await twoCandidates('stopped')
  await using leader = pair[0]
  await using other = pair[1]
  await eventually(() => acts(leader))
  const lease = await store.get(Lease, { namespace, name: 'stopped' })
  const ended = once(leader.child, 'exit')
  leader.child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  await eventually(() => acts(other))
  const successor = await store.get(Lease, { namespace, name: 'stopped' })
  expect(leader.lines.at(-1)).toBe('over')
  expect([lease?.spec.holderIdentity, successor?.spec.holderIdentity]).toEqual([leader.identity, other.identity])
  expect(reigns(pair)).toEqual([leader.identity, other.identity])
})

test('a leader suspended past its lease writes nothing more and exits with an error', async () => {
  const pair = await twoCandidates('held-up')
  await using leader = pair[0]
  await using other = pair[1]
  await eventually(() => acts(leader))
  leader.child.kill('SIGSTOP')
  await eventually(() => acts(other))
  const ended = once(leader.child, 'exit')
  leader.child.kill('SIGCONT')
  expect(await ended).toEqual([1, null])
  await eventually(() => reigns(pair).length === 2)
  expect(reigns(pair)).toEqual([leader.identity, other.identity])
  expect((await store.get(Lease, { namespace, name: 'held-up' }))?.spec.holderIdentity).toBe(other.identity)
})
