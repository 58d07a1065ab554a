import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ApiWrite, openAuditLog, sequentialWrites, writeOf } from '../support/api/audit-log.ts'
import { clientsOf } from './setup/commands.ts'

test('the audit log has each write as soon as it is answered, and no reads', async () => {
  const { kubectl } = clientsOf(process.env.KUBECONFIG ?? '')
  const log = openAuditLog()
  const mark = await log.mark()
  const name = `written-${Date.now()}`
  await kubectl(['create', 'configmap', name, '--namespace', 'default'])
  await kubectl(['get', 'configmap', name, '--namespace', 'default'])
  await kubectl(['auth', 'can-i', 'get', 'pods'])
  await kubectl(['delete', 'configmap', name, '--namespace', 'default'])
  const writes = (await log.writesSince(mark)).filter(({ user }) => user === 'admin')
  expect(writes).toMatchObject([
    { verb: 'create', resource: 'configmaps', namespace: 'default', code: 201 },
    { verb: 'delete', resource: 'configmaps', namespace: 'default', name, code: 200 },
  ])
  expect(sequentialWrites(writes)).toBe(2)
})

const event = {
  stage: 'ResponseComplete',
  verb: 'patch',
  user: { username: 'system:serviceaccount:mooring-system:mooring-operator' },
  objectRef: { resource: 'sharedinstances', subresource: 'status', namespace: 'a--b', name: 'x' },
  responseStatus: { code: 200 },
  requestReceivedTimestamp: '2026-01-02T03:04:05.000001Z',
  stageTimestamp: '2026-01-02T03:04:05.010000Z',
}

test.each([
  { does: 'a patch of a status is a write', change: {}, is: { resource: 'sharedinstances/status', verb: 'patch' } },
  {
    does: 'an unauthenticated attempt is a write',
    change: { user: {}, responseStatus: { code: 401 } },
    is: { user: '', code: 401 },
  },
  { does: 'an unfinished request is not a write', change: { stage: 'ResponseStarted' }, is: undefined },
  { does: 'a read is not a write', change: { verb: 'watch' }, is: undefined },
  { does: 'an access review is not a write', change: { objectRef: { resource: 'subjectaccessreviews' } }, is: undefined },
  { does: 'a call without an object is not a write', change: { objectRef: undefined }, is: undefined },
])('$does', ({ change, is }) => {
  const write = writeOf(JSON.stringify({ ...event, verb: 'patch', ...change }))
  if (is) expect(write).toMatchObject(is)
  else expect(write).toBeUndefined()
})

test('an incomplete last line is ignored', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-audit-'))
  try {
    const file = join(directory, 'audit.log')
    const line = JSON.stringify(event)
    await writeFile(file, `${line}\n${line}\n${line.slice(0, 100)}`)
    expect(await openAuditLog(file).writesSince({ bytes: line.length + 1 })).toHaveLength(1)
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('overlapping writes count once', () => {
  const between = (from: number, to: number): ApiWrite => ({
    ...{ user: 'u', pod: undefined, verb: 'create', resource: 'r', namespace: undefined, name: undefined, code: 201 },
    ...{ from, to },
  })
  expect(sequentialWrites([between(0, 10), between(5, 12), between(12, 20), between(13, 15)])).toBe(2)
})
