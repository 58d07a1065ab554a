import { randomUUIDv7 } from 'node:crypto'
import type { AuditRecord, ConnectionRecord, RequestRecord } from '../../../journal/port.ts'

let last = 0n

/** Returns a UUIDv7 of a time. Of two ids of one millisecond the later one sorts later. */
export function idAt(atMs: number): string {
  last += 1n
  const time = atMs.toString(16).padStart(12, '0')
  const order = last.toString(16).padStart(15, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${order.slice(0, 3)}-a${order.slice(3, 6)}-000${order.slice(6)}`
}

export function requestRecord(about: Partial<RequestRecord> & Pick<RequestRecord, 'tunnel'>): RequestRecord {
  const at = about.at ?? Date.now()
  return {
    id: idAt(at),
    at,
    method: 'GET',
    path: '/',
    status: 200,
    durationMs: 2.5,
    bytesIn: 10,
    bytesOut: 100,
    sourceIp: '203.0.113.1',
    origin: 'backend',
    reason: null,
    protocol: 'http/1.1',
    ...about,
  }
}

export function connectionRecord(about: Partial<ConnectionRecord> & Pick<ConnectionRecord, 'tunnel'>): ConnectionRecord {
  const at = about.at ?? Date.now()
  return {
    id: idAt(at),
    at,
    type: 'connect',
    edge: 'embedded',
    clientIp: '203.0.113.9',
    authMethod: 'key',
    sessionId: randomUUIDv7(),
    keyFingerprint: 'SHA256:abc',
    passwordId: null,
    reason: null,
    durationMs: null,
    ...about,
  }
}

export function auditRecord(about: Partial<AuditRecord> & Pick<AuditRecord, 'namespace'>): AuditRecord {
  const at = about.at ?? Date.now()
  return {
    id: idAt(at),
    at,
    actor: { name: 'local:alice', kind: 'user' },
    via: 'rest',
    action: 'update',
    resource: { kind: 'Tunnel', id: randomUUIDv7(), name: 'web' },
    generation: 2,
    changes: [{ path: 'spec.config.httpsOnly', from: false, to: true }],
    sourceIp: '203.0.113.1',
    requestId: randomUUIDv7(),
    ...about,
  }
}

/** Texts that are not a UUIDv7 in lower case: each position is wrong once, and so is the length. */
export const WRONG_IDS: readonly string[] = [
  '',
  'x',
  '01890000-0000-4000-8000-000000000000',
  '01890000-0000-7000-8000-00000000000',
  '01890000-0000-7000-8000-000000000000 ',
  '01890000-0000-7000-8000-0000000000000',
  '0189000A-0000-7000-8000-000000000000',
  '01890000 0000-7000-8000-000000000000',
  '01890000-0000-7000-8000 000000000000',
  '01890000-0000-7000-8000-00000000000g',
  '01890000-0000-7000-8000-00000000000\0',
  '0189000\0-0000-7000-8000-000000000000',
  '@1890000-0000-7000-8000-000000000000',
]
