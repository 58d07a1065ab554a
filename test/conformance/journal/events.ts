import { describe, expect, test } from 'vitest'
import type { AuditFilter, AuditRecord, ConnectionFilter, ConnectionRecord, Journal } from '../../../journal/port.ts'
import { type Open, newNamespace, newTunnel } from './test-journal.ts'
import { auditRecord, connectionRecord, idAt } from './records.ts'

const ended = (session: ConnectionRecord, about: Partial<ConnectionRecord> = {}): ConnectionRecord =>
  connectionRecord({
    ...session,
    type: 'disconnect',
    reason: 'client_closed',
    durationMs: 1_000,
    ...about,
    id: idAt(session.at),
  })

const openOf = async (journal: Journal, tunnel: string) =>
  (await journal.openSessions()).filter((session) => session.tunnel === tunnel)

export function eventClauses(open: Open): void {
  describe('connections', () => {
    test('are listed once acknowledged, newest first; refused ones only on request', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const connect = connectionRecord({ tunnel })
      const disconnect = ended(connect)
      const refused = connectionRecord({ tunnel, type: 'refused', authMethod: null, keyFingerprint: null, reason: 'ip_denied' })
      for (const record of [connect, disconnect, refused]) await opened.journal.connection(record)
      const list = (by: Partial<ConnectionFilter>) => opened.journal.connections({ tunnel, refused: false, ...by }, { limit: 10 })
      expect(await list({})).toEqual([disconnect, connect])
      expect(await list({ refused: true })).toEqual([refused, disconnect, connect])
      expect(await list({ type: 'connect' })).toEqual([connect])
      expect(await list({ clientIp: '198.51.100.1' })).toEqual([])
      expect(await list({ from: connect.at + 60_000 })).toEqual([])
      expect(await list({ to: connect.at })).toEqual([])
      expect(await opened.journal.connections({ tunnel, refused: true }, { limit: 2, before: refused.id })).toEqual([
        disconnect,
        connect,
      ])
    })

    test('keep a session open until its disconnect, in any order and with duplicates', async () => {
      await using opened = await open()
      const { journal } = opened
      const tunnel = newTunnel()
      const [stays, goes, late] = [connectionRecord({ tunnel }), connectionRecord({ tunnel }), connectionRecord({ tunnel })]
      await Promise.all([stays, goes, ended(late)].map((record) => journal.connection(record)))
      await Promise.all([ended(goes), late].map((record) => journal.connection(record)))
      await Promise.all([stays, goes, late].map((record) => journal.connection(record)))
      expect(await openOf(journal, tunnel)).toEqual([stays])
      const presence = await journal.presence([tunnel, newTunnel()])
      expect([...presence]).toEqual([[tunnel, { sessions: 1, lastConnectedAt: Math.max(stays.at, goes.at, late.at) }]])
    })

    test('that were all refused leave a tunnel without presence', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      await opened.journal.connection(connectionRecord({ tunnel, type: 'refused' }))
      expect([...(await opened.journal.presence([tunnel]))]).toEqual([])
    })

    test('with an id that is not a UUIDv7 are rejected', async () => {
      await using opened = await open()
      const record = connectionRecord({ tunnel: newTunnel(), id: '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10' })
      await expect(opened.journal.connection(record)).rejects.toMatchObject({ code: 'invalid_record' })
    })
  })

  describe('the audit log', () => {
    test('returns its entries by each filter', async () => {
      await using opened = await open()
      const namespace = newNamespace()
      const resource = { kind: 'TunnelPassword', id: newTunnel(), name: 'x' }
      const first = auditRecord({
        namespace,
        action: 'create',
        changes: [{ path: 'spec', from: null, to: { a: [1, '☃', null] } }],
      })
      const second = auditRecord({ namespace, actor: null, via: 'unknown', sourceIp: null, requestId: null, generation: 7 })
      const third = auditRecord({
        namespace,
        action: 'delete',
        resource,
        actor: { name: 'local:bob', kind: 'user' },
        changes: [],
        generation: null,
      })
      for (const record of [first, second, third, auditRecord({ namespace: newNamespace() })]) await opened.journal.audit(record)
      const list = (by: Partial<AuditFilter>) => opened.journal.auditEntries({ namespace, ...by }, { limit: 10 })
      expect(await list({})).toEqual([third, second, first])
      expect(await list({ kind: 'TunnelPassword' })).toEqual([third])
      expect(await list({ id: first.resource.id })).toEqual([first])
      expect(await list({ actor: 'local:bob' })).toEqual([third])
      expect(await list({ action: 'update' })).toEqual([second])
      expect(await list({ from: third.at + 60_000 })).toEqual([])
      expect(await list({ to: first.at })).toEqual([])
      expect(await opened.journal.auditEntries({ namespace }, { limit: 1, before: third.id })).toEqual([second])
    })

    test('finds a tunnel by its hostname, and adds it to every entry of the tunnel once one entry has it', async () => {
      await using opened = await open()
      const { journal } = opened
      const [namespace, uid, hostname] = [newNamespace(), newTunnel(), '0123456789abcdef']
      const [unnamed, named] = [
        { kind: 'Tunnel', id: uid, name: 'web' },
        { kind: 'Tunnel', id: uid, name: 'web', hostname },
      ]
      const created = auditRecord({ namespace, resource: unnamed, action: 'create', generation: 1 })
      const other = auditRecord({ namespace, resource: { ...unnamed, id: newTunnel() } })
      const read = auditRecord({ namespace, action: 'read', generation: null })
      for (const record of [created, other, read]) await journal.audit(record)
      expect(await journal.auditEntries({ namespace, hostname }, { limit: 9 })).toEqual([])
      const deleted = auditRecord({ namespace, resource: named, action: 'delete', generation: null })
      await journal.audit(deleted)
      const found = [deleted, { ...created, resource: named }]
      expect(await journal.auditEntries({ namespace, hostname }, { limit: 9 })).toEqual(found)
      expect(await journal.auditEntries({ namespace, id: uid }, { limit: 9 })).toEqual(found)
      expect(await journal.auditEntries({ namespace, action: 'read' }, { limit: 9 })).toEqual([read])
      expect(await journal.auditEntries({ namespace: newNamespace(), hostname }, { limit: 9 })).toEqual([])
    })

    test('returns the changes that have an entry, and keeps no entry via unknown beside a known one', async () => {
      await using opened = await open()
      const { journal } = opened
      const [namespace, uid, other] = [newNamespace(), newTunnel(), newTunnel()]
      const of = (id: string, generation: number | null, about: Partial<AuditRecord> = {}) =>
        auditRecord({ namespace, resource: { kind: 'Tunnel', id, name: 'x' }, generation, ...about })
      const asked = [uid, other].flatMap((resource) => [1, 2, null].map((generation) => ({ resource, generation })))
      expect(await journal.audited(asked)).toEqual([])
      const seen = [of(uid, 1, { action: 'create' }), of(other, null, { action: 'delete' })]
      for (const record of seen) await journal.audit(record)
      expect(await journal.audited(asked)).toEqual([asked[0], asked[5]])

      const unseen = { actor: null, via: 'unknown' } as const
      const [first, again] = [of(uid, 2, unseen), of(uid, 2, unseen)]
      const late = [of(uid, 1, unseen), of(other, null, { ...unseen, action: 'delete' }), first, again]
      for (const record of late) await journal.audit(record)
      expect(await journal.auditEntries({ namespace }, { limit: 9 })).toEqual([first, seen[1], seen[0]])
      expect(await journal.audited(asked)).toEqual([asked[0], asked[1], asked[5]])
    })

    test('a late entry replaces the entry via unknown of the same change', async () => {
      await using opened = await open()
      const { journal } = opened
      const [namespace, uid] = [newNamespace(), newTunnel()]
      const of = (generation: number | null, about: Partial<AuditRecord> = {}) =>
        auditRecord({ namespace, resource: { kind: 'Tunnel', id: uid, name: 'x' }, generation, ...about })
      const unseen = { actor: null, via: 'unknown' } as const
      const gone = { action: 'delete' } as const
      const guesses = [of(1, unseen), of(2, unseen), of(null, { ...unseen, ...gone })]
      for (const record of guesses) await journal.audit(record)
      const read = of(null, { action: 'read' })
      await journal.audit(read)
      expect(await journal.auditEntries({ namespace }, { limit: 9 })).toEqual([read, ...guesses.toReversed()])
      const late = [of(2), of(null, gone)]
      for (const record of [...late, ...late]) await journal.audit(record)
      for (const record of guesses) await journal.audit(record)
      expect(await journal.auditEntries({ namespace }, { limit: 9 })).toEqual([late[1], late[0], read, guesses[0]])
    })
  })
}
